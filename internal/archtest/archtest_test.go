package archtest_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tidemark-io/tidemark/internal/archtest"
)

func TestTheRepositoryKeepsTheRulesOfTheHouse(t *testing.T) {
	tree, err := archtest.Load(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range tree.Violations() {
		t.Error(v)
	}
}

func root(t *testing.T) string {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); !errors.Is(missing, fs.ErrNotExist) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("there is no go.mod above this folder")
		}
	}
	t.Fatal(err)
	return ""
}

// tree is sources by path.
type tree map[string]string

func (s tree) violations(t *testing.T) []string {
	t.Helper()
	fsys := fstest.MapFS{}
	for path, src := range s {
		fsys[path] = &fstest.MapFile{Data: []byte(src)}
	}
	loaded, err := archtest.Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Violations()
}

// expect wants exactly one violation with the text, or none for no text.
func (s tree) expect(t *testing.T, want string) {
	t.Helper()
	got := s.violations(t)
	if want == "" && len(got) == 0 {
		return
	}
	if want == "" || len(got) != 1 || !strings.Contains(got[0], want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNestedModulesTestdataAndHiddenFoldersAreLeftOut(t *testing.T) {
	bad := "package x\nfunc init() {}\n"
	tree{
		"go.mod":            "module m",
		"tools/go.mod":      "module t",
		"tools/x.go":        bad,
		"wal/testdata/x.go": bad,
		".cache/x.go":       bad,
	}.expect(t, "")
}

func TestASourceThatDoesNotParseIsAnError(t *testing.T) {
	if _, err := archtest.Load(fstest.MapFS{"wal/x.go": {Data: []byte("package")}}); err == nil {
		t.Error("no error")
	}
}

func TestAViolationSaysWhereItIs(t *testing.T) {
	got := tree{"wal/a.go": "// Package wal is.\npackage wal\n\nfunc init() {}\n"}.violations(t)
	if len(got) != 1 || got[0] != "wal/a.go:4: func init" {
		t.Errorf("got %q", got)
	}
}
