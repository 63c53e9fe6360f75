package compaction_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/internal/scratch"
	"github.com/tidemark-io/tidemark/ltx"
)

// large writes snapshots of 64 KiB at least, and counts them.
type large struct{ begun int }

func (l *large) Snapshot(_ context.Context, w io.Writer) (ltx.Pos, error) {
	l.begun++
	_, err := w.Write(make([]byte, 64<<10))
	return ltx.Pos{}, err
}

func TestASnapshotThatCannotFitIsReportedOnceAndNotTriedInVain(t *testing.T) {
	for name, visits := range map[string]bool{"running": false, "visited": true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorking(t, func(o *compaction.Options) { o.Config.Snapshots = 24 * time.Hour })
			c := &large{}
			small, err := scratch.New(t.TempDir(), 50<<10)
			if err != nil {
				t.Fatal(err)
			}
			w.options.Snapshotter, w.options.Shelf = c, compaction.NewShelf(small, 1000)
			anew := func() {
				w.Worker = compaction.NewWorker(w.bucket, w.Replica, small, w.options)
			}
			anew()
			w.write(1)
			<-time.After(25 * time.Hour) // one is due
			if visits {
				for range 60 {
					w.commits(5)
					anew()
					if _, err := w.Tend(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			} else {
				w.run(func() { w.commits(300); <-time.After(5 * time.Hour); w.commits(30) })
			}
			if s := w.Status(); c.begun != 1 || !errors.Is(s.Error, compaction.ErrUnfit) {
				t.Errorf("%s: begun %d times, status says %v", name, c.begun, s.Error)
			}
			if n := w.warnings(); n != 1 {
				t.Errorf("%s: %d warnings: %s", name, n, w.log.String())
			}
			if len(w.list(1)) == 0 {
				t.Errorf("%s: merging stopped", name)
			}
			if _, err := w.Worker.Snapshot(t.Context()); !errors.Is(err, compaction.ErrUnfit) || c.begun != 2 {
				t.Errorf("%s: an order got %v", name, err)
			}
			if err := small.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
