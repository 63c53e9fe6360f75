package capture_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/capture"
)

func watching(t *testing.T) *capture.Watcher {
	t.Helper()
	w := capture.NewWatcher(slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var g errgroup.Group
	g.Go(func() error { return w.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		_ = g.Wait()
	})
	return w
}

func TestEventsReachTheDatabaseTheyBelongTo(t *testing.T) {
	dir := t.TempDir()
	w := watching(t)
	const n = 50
	var woken [n]atomic.Int64
	names := [n]string{}
	for i := range n {
		names[i] = filepath.Join(dir, fmt.Sprintf("app%d", i))
		stop, err := w.Database(names[i], func() { woken[i].Add(1) })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	write := func(path string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The watch may begin after the first writes.
	eventually(t, "awake", func() bool { write(names[0]); return woken[0].Load() > 0 })
	write(filepath.Join(dir, "app1-shm"))
	write(filepath.Join(dir, "app11"))
	write(filepath.Join(dir, "app2-wal"))
	write(filepath.Join(dir, "app3-journal"))
	for _, i := range []int{11, 2, 3} {
		eventually(t, names[i], func() bool { return woken[i].Load() > 1 })
	}
	if n := woken[1].Load(); n > 1 {
		t.Errorf("app1 was woken %d times by what is not its own", n)
	}
}

func TestADirectoryThatComesBackIsWatchedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	w := watching(t)
	var woken, lost atomic.Int64
	stop, _ := w.Database(filepath.Join(dir, "app"), func() { woken.Add(1) })
	defer stop()
	stop, _ = w.Directory(dir, func(name string) {
		if name == "" {
			lost.Add(1)
		}
	})
	defer stop()
	for range 2 {
		before := lost.Load()
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		eventually(t, "told that the directory is there", func() bool { return lost.Load() > before })
		woken.Store(0)
		eventually(t, "woken", func() bool {
			if err := os.WriteFile(filepath.Join(dir, "app-wal"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			return woken.Load() > 0
		})
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		eventually(t, "told that the directory is gone", func() bool { return lost.Load() > before+1 })
	}
}
