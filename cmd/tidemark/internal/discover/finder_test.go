package discover_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/discover"
)

const head = "SQLite format 3\x00 and more"

// world is a directory with a finder, and what the finder has told of it.
type world struct {
	t      *testing.T
	root   string
	finder *discover.Finder
	log    bytes.Buffer
	inUse  string // name of a file that must not be opened

	mu    sync.Mutex
	there []string // sorted names
	gone  []string // removed and not forgotten
}

func newWorld(t *testing.T, o discover.Options) *world {
	w := &world{t: t, root: t.TempDir()}
	o.Root, o.Log = w.root, slog.New(slog.NewTextHandler(&w.log, nil))
	for i := range o.Except {
		o.Except[i] = filepath.Join(w.root, o.Except[i])
	}
	w.finder = discover.New(o, w)
	return w
}

// follow runs the finder with real file events until the test ends.
func follow(t *testing.T, o discover.Options) *world {
	watcher := capture.NewWatcher(slog.New(slog.DiscardHandler))
	o.Watch = watcher.Directory
	w := newWorld(t, o)
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	group.Go(func() error { return watcher.Run(ctx) })
	group.Go(func() error { return w.finder.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		if err := group.Wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("the finder ended with %v", err)
		}
	})
	return w
}

func (w *world) InUse(path string, _ fs.FileInfo) bool {
	return w.inUse != "" && w.name(path) == w.inUse
}

func (w *world) Add(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains(w.there, w.name(path)) {
		w.t.Errorf("%s was added twice", path)
	}
	w.there = append(w.there, w.name(path))
	slices.Sort(w.there)
}

func (w *world) Remove(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.there, w.name(path))
	if i < 0 {
		w.t.Errorf("%s was removed but not there", path)
		return
	}
	w.there = slices.Delete(w.there, i, i+1)
	w.gone = append(w.gone, w.name(path))
}

func (w *world) name(path string) string { return strings.TrimPrefix(path, w.root+"/") }

func (w *world) path(name string) string { return filepath.Join(w.root, name) }

func (w *world) write(name, content string) {
	w.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(w.path(name)), 0o755), os.WriteFile(w.path(name), []byte(content), 0o600)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) try(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// expect waits until exactly these databases are there.
func (w *world) expect(want ...string) {
	w.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var got []string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-tick.C {
		w.mu.Lock()
		got = slices.Clone(w.there)
		w.mu.Unlock()
		if slices.Equal(got, want) {
			return
		}
	}
	w.t.Fatalf("found %v, want %v", got, want)
}

// forget lets everything go that was removed.
func (w *world) forget() {
	w.mu.Lock()
	gone := w.gone
	w.gone = nil
	w.mu.Unlock()
	for _, name := range gone {
		w.finder.Forget(w.path(name))
	}
}

// fill makes one of everything that may lie in a directory.
func (w *world) fill() {
	for name, content := range map[string]string{
		"a.db": head, "b.sqlite": head, "text.db": "no database at all, but long", "short.db": "SQL", "empty.db": "",
		"a.db-wal": head, "a.db-shm": head, "a.db-journal": head, "deep/c.db": head, "deep/er/d.db": head,
		".a.db-tidemark/x.db": head, ".a.db-litestream/x.db": head, "skipped/x.db": head, "deep/skipped/e.db": head,
		".a.db.tidemark-restore-abc.db": head,
	} {
		w.write(name, content)
	}
	w.try(os.Symlink(w.path("a.db"), w.path("link.db")))
	w.try(os.Symlink(w.path("deep"), w.path("linked")))
	w.try(os.Mkdir(w.path("dir.db"), 0o755))
}

func TestScanFindsDatabasesOnly(t *testing.T) {
	for name, test := range map[string]struct {
		pattern   string
		recursive bool
		want      []string
	}{
		"one level":       {"*.db", false, []string{"a.db"}},
		"all levels":      {"*.db", true, []string{"a.db", "deep/c.db", "deep/er/d.db", "deep/skipped/e.db"}},
		"another pattern": {"b.*", true, []string{"b.sqlite"}},
		"everything":      {"*", false, []string{"a.db", "b.sqlite"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, discover.Options{Pattern: test.pattern, Recursive: test.recursive, Except: []string{"skipped"}})
			w.fill()
			w.try(w.finder.Scan())
			w.expect(test.want...)
			if test.pattern == "*.db" && strings.Count(w.log.String(), "link is not followed") != 1 {
				t.Errorf("the log is %q", w.log.String())
			}
		})
	}
}

func TestAFileInUseIsNotOpened(t *testing.T) {
	w := newWorld(t, discover.Options{Pattern: "*.db"})
	w.write("a.db", head)
	w.write("b.db", head)
	w.inUse = "a.db"
	w.try(w.finder.Scan())
	w.expect("b.db")
}

func TestScanOfNothingIsAnError(t *testing.T) {
	w := newWorld(t, discover.Options{Pattern: "*.db"})
	w.write("a.sqlite", head)
	if err := w.finder.Scan(); !errors.Is(err, discover.ErrEmpty) || !strings.Contains(err.Error(), "*.db") {
		t.Errorf("no database: got %v", err)
	}
	w.try(os.RemoveAll(w.root))
	if err := w.finder.Scan(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: got %v", err)
	}
}
