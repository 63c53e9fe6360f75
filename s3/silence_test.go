package s3_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/s3"
	"github.com/tidemark-io/tidemark/storage"
)

func TestSilenceIsNoticedWhateverIsAskedFor(t *testing.T) {
	gateway := testbucket.Gateway(t)
	var group errgroup.Group
	for _, c := range calls() {
		b, p := furnished(t, gateway, string(c.kind), "&idle-timeout=300ms", s3.Retry{For: time.Minute})
		p.StallNext(1, c.kind)
		group.Go(func() error {
			if err := c.do(t.Context(), b); err != nil {
				return fmt.Errorf("%s: %w", c.kind, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	if n := uploads(t, gateway); n != 0 {
		t.Errorf("%d uploads left", n)
	}
}

// The body is longer than what the connection holds: the client waits in a
// write, not for the reply.
func TestServerThatReadsNoFurtherIsLeft(t *testing.T) {
	p := testbucket.NewProxy(t, testbucket.Gateway(t).Endpoint())
	b := openFor(t, p.URL("p")+"&part-size=32MiB&idle-timeout=500ms", s3.Retry{For: time.Minute})
	content := numbered(24 << 20)
	p.StallNext(1, testbucket.Put)
	if _, err := b.Put(t.Context(), "a", bytes.NewReader(content), storage.Condition{}); err != nil {
		t.Fatal(err)
	}
	if got := p.Requests("PUT"); got < 2 {
		t.Errorf("%d requests, want a second one", got)
	}
	if got, err := load(t, b, "a"); err != nil || got != string(content) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

func TestConnectionsCutBetweenRequestsCostNothing(t *testing.T) {
	b, p := faulty(t, "p")
	for name, cut := range map[string]func(){"behind each reply": p.Stutter, "while idle": func() {}} {
		cut()
		for i := range 20 {
			want := fmt.Sprint(name, i)
			store(t, b, "a", want)
			if got, err := load(t, b, "a"); err != nil || got != want {
				t.Errorf("%s: got %q, %v", name, got, err)
			}
			if name == "while idle" {
				p.CutIdle()
			}
		}
		p.Heal()
	}
}

func TestBodiesThatEndEarlyAreReadOn(t *testing.T) {
	b, p := faulty(t, "p")
	content := string(numbered(300_000))
	store(t, b, "a", content)
	for name, fault := range map[string]func(int, ...testbucket.Kind){"truncated": p.Truncate, "short": p.Shorten} {
		fault(50_000, testbucket.Get)
		body, _, err := b.Get(t.Context(), "a", storage.Range{Offset: 1, Length: 250_000})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(body)
		if err != nil || string(got) != content[1:250_001] {
			t.Errorf("%s: got %d bytes, %v", name, len(got), err)
		}
		body.Close()
		p.Heal()
	}
}

func TestListingThatEndsEarlyIsNoShortList(t *testing.T) {
	b, p := faulty(t, "p")
	for i := range 20 {
		store(t, b, fmt.Sprintf("%02d", i), "x")
	}
	for _, n := range []int{0, 1, 60, 400, 1500} {
		for name, fault := range map[string]func(int, ...testbucket.Kind){"truncated": p.Truncate, "short": p.Shorten} {
			fault(n, testbucket.List)
			var last error
			for _, last = range b.List(t.Context(), "", "") {
			}
			if last == nil {
				t.Errorf("%s after %d bytes: no error", name, n)
			}
			p.Heal()
		}
	}
}

func TestPageThatIsNoObjectIsNotReadAsOne(t *testing.T) {
	b, p := faulty(t, "p")
	store(t, b, "a", "content")
	p.Replace("<html>Please log in</html>", testbucket.Get, testbucket.Head)
	got, err := load(t, b, "a")
	if err == nil || !strings.Contains(err.Error(), "not an object") {
		t.Errorf("got %q, %v", got, err)
	}
}
