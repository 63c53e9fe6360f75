package socket_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/socket"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

func TestSocketsOfDeadProcessesAreRemovedFromTheDefaultDirectory(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", shortDir(t))
	if err := socket.MakeDefaultDir(); err != nil {
		t.Fatal(err)
	}
	dir := socket.DefaultDir()
	leaveDead(t, filepath.Join(dir, "11.sock"))
	leaveDead(t, filepath.Join(dir, "mine.sock"))
	listen(t, filepath.Join(dir, "12.sock"))
	if err := os.WriteFile(filepath.Join(dir, "13.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	leaveDead(t, filepath.Join(dir, "14.sock"))
	listen(t, filepath.Join(dir, "15.sock"))
	if got, want := names(t, dir), []string{"12.sock", "13.sock", "15.sock", "mine.sock"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSocketsElsewhereAreLeftAlone(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", shortDir(t))
	dir := shortDir(t)
	leaveDead(t, filepath.Join(dir, "11.sock"))
	listen(t, filepath.Join(dir, "12.sock"))
	if got, want := names(t, dir), []string{"11.sock", "12.sock"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
