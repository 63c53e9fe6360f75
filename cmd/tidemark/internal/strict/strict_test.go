package strict_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/strict"
)

type settings struct {
	Name    string        `yaml:"name"`
	Wait    time.Duration `yaml:"wait"`
	Level   level         `yaml:"level"`
	Items   []item        `yaml:"items"`
	Base    base          `yaml:",inline"`
	Section base          `yaml:"section"`
	Hidden  string        `yaml:"-"`
}

type base struct {
	On    bool   `yaml:"on-or-off"`
	Maybe *bool  `yaml:"maybe"`
	Count int    `yaml:"count"`
	Mode  uint32 `yaml:"mode"`
}

type item struct {
	Path string `yaml:"path"`
	Size int    `yaml:"size"`
}

func (i *item) SetDefaults() { i.Size = 10 }

type level struct{ text string }

func (l *level) UnmarshalText(b []byte) error {
	if string(b) == "bad" {
		return errors.New("not this level")
	}
	l.text = string(b)
	return nil
}

func decode(text string) (settings, error) {
	got := settings{Name: "default", Wait: time.Minute, Section: base{Count: 3}}
	d := strict.Decoder{
		Refused: map[string]string{"items.later": "is not possible yet"},
		Suggest: func(word string, known []string) string { return fmt.Sprint(" of ", len(known)) },
	}
	return got, d.Decode([]byte(text), &got)
}

func TestWhatIsNotNamedKeepsItsDefault(t *testing.T) {
	yes := true
	for _, test := range []struct {
		text   string
		change func(*settings)
	}{
		{"", func(*settings) {}},
		{"# nothing\n", func(*settings) {}},
		{"section:\nitems:\n", func(*settings) {}},
		{"name:\n", func(*settings) {}},
		{"name: ''\n", func(s *settings) { s.Name = "" }},
		{"name: 0123\n", func(s *settings) { s.Name = "0123" }},
		{"name: |\n  two\n  lines\n", func(s *settings) { s.Name = "two\nlines\n" }},
		{"wait: 5s\ncount: -2\nmaybe: true\n", func(s *settings) {
			s.Wait, s.Base.Count, s.Base.Maybe = 5*time.Second, -2, &yes
		}},
		{"section: {mode: 0640}\n", func(s *settings) { s.Section.Mode = 0o640 }},
		{"level: high\n", func(s *settings) { s.Level.text = "high" }},
		{"items:\n- path: a\n- size: 1\n-\n", func(s *settings) { s.Items = []item{{"a", 10}, {"", 1}, {"", 10}} }},
		{"section: &x {count: 4}\nitems:\n", func(s *settings) { s.Section.Count = 4 }},
		{"items:\n- &a {path: p, size: 2}\n- *a\n- <<: *a\n  size: 3\n", func(s *settings) {
			s.Items = []item{{"p", 2}, {"p", 2}, {"p", 3}}
		}},
	} {
		want := settings{Name: "default", Wait: time.Minute, Section: base{Count: 3}}
		test.change(&want)
		got, err := decode(test.text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, %v; want %+v", test.text, got, err, want)
		}
	}
}

func TestMistakesAreNamedWithTheirLine(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"name: a\nnme: b\n", "line 2: nme: unknown key of 9"},
		{"section:\n  cuont: 1\n", "line 2: section.cuont: unknown key of 4"},
		{"items:\n- path: a\n- pth: b\n", "line 3: items[1].pth: unknown key of 2"},
		{"Hidden: x\n", "line 1: Hidden: unknown key"},
		{"items:\n- later: 1\n", "line 2: items[0].later: is not possible yet"},
		{"name: a\nname: b\n", "line 2: mapping key \"name\" already defined"},
		{"items:\n- path: a\n  path: b\n", "line 3: mapping key"},
		{"wait: 30\n", `line 1: wait: want a duration such as 500ms, 30s or 5m, not "30"`},
		{"wait:\n", "wait: has no value"},
		{"on-or-off: yes\n", `want true or false, not "yes"`},
		{"on-or-off: 'true'\n", `want true or false`},
		{"count: 1.5\n", `want a whole number, not "1.5"`},
		{"count: 99999999999999999999\n", "want a whole number"},
		{"mode: -1\n", "want a whole number"},
		{"name: [a]\n", "want a text, not a list"},
		{"name: {a: b}\n", "want a text, not keys with values"},
		{"items: {path: a}\n", "line 1: items: want a list (lines that begin with -), not keys with values"},
		{"items: a\n", `want a list (lines that begin with -), not "a"`},
		{"section: 3\n", `section: want keys with values, not "3"`},
		{"level: bad\n", "level: not this level"},
		{"- a\n", "line 1: want keys with values, not a list"},
		{"just text", "want keys with values"},
		{"name: a\n\tx: y\n", "line 2: "},
		{"name: [\n", "line 1: "},
		{"name: *x\n", "alias"},
		{"name: !!str a\n", "tags are not possible"},
		{"name: a\n---\nname: b\n", "line 3: a second document"},
	} {
		_, err := decode(test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: got %v, want %q", test.text, err, test.want)
		}
	}
}

func TestEveryMistakeIsReported(t *testing.T) {
	_, err := decode("a: 1\nwait: x\nsection:\n  b: 2\n")
	if err == nil || strings.Count(err.Error(), "line ") != 3 {
		t.Fatalf("got %v, want three problems", err)
	}
}

func TestKeysOfInlineStructsHaveNoParent(t *testing.T) {
	keys := strict.Keys(reflect.TypeFor[settings]())
	for _, want := range []string{"name", "count", "section", "section.count", "items.path"} {
		if !slices.Contains(keys, want) {
			t.Errorf("%q is missing in %v", want, keys)
		}
	}
}

func FuzzDecodeNeverPanics(f *testing.F) {
	for _, seed := range []string{"items:\n- &a {path: p}\n- *a\n", "a: &a *a\n", "name: !!x |\n", "? a\n: b\n", "<<: *x\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := decode(text); err != nil && err.Error() == "" {
			t.Fatal("an error without words")
		}
	})
}
