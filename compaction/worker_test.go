package compaction_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

var errStop = errors.New("stop")

// quick is a configuration whose day is some minutes.
func quick() compaction.Config {
	return compaction.Config{
		Levels:    compaction.Levels{{}, {1, 10 * time.Second}, {2, 30 * time.Second}, {3, time.Minute}},
		Snapshots: 2 * time.Minute,
		Retention: compaction.Retention{Level0: 20 * time.Second, Window: 2 * time.Minute},
		Slice:     compaction.Slice{Files: 100, Bytes: 1 << 20},
	}
}

// working is a worker with what it works on.
type working struct {
	*history
	*compaction.Worker
	options compaction.Options
	log     bytes.Buffer
}

func newWorking(t *testing.T, change func(*compaction.Options)) *working {
	t.Helper()
	w := &working{history: newHistory(t)}
	w.options = compaction.Options{
		Config: quick(), Snapshotter: w.history, Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	}
	if change != nil {
		change(&w.options)
	}
	w.restart()
	return w
}

func (w *working) restart() {
	w.Worker = compaction.NewWorker(w.bucket, w.Replica, w.scratch, w.options)
}

// run lets the worker run while something happens.
func (w *working) run(during func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancelCause(w.t.Context())
	var g errgroup.Group
	g.Go(func() error { return w.Worker.Run(ctx) })
	during()
	synctest.Wait()
	cancel(errStop)
	if err := g.Wait(); !errors.Is(err, errStop) {
		w.t.Errorf("run ended with %v", err)
	}
}

// commits stores one commit a second.
func (w *working) commits(n int) {
	w.t.Helper()
	for range n {
		for _, f := range w.write(1) {
			w.Uploaded(f)
		}
		<-time.After(time.Second)
	}
}

func (w *working) calls() (n int) {
	for _, op := range []storagetest.Op{storagetest.Get, storagetest.Put, storagetest.List, storagetest.Delete} {
		n += w.bucket.Calls(op)
	}
	return n
}

func TestAWorkerCompactsWhileThingsChangeAndThenRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, nil)
		w.write(1)
		w.run(func() {
			w.commits(300)
			raw, merged := w.list(0), w.list(1, 2, 3)
			if len(raw) > 40 || len(merged) < 15 || len(merged) > 30 {
				t.Errorf("%d files of level 0 and %d merged ones, want few and some", len(raw), len(merged))
			}
			for txid := w.pos.TXID - 19; txid <= w.pos.TXID; txid++ {
				w.restored(txid)
			}
			if w.Idle() {
				t.Error("idle while files wait for their bucket")
			}
			<-time.After(time.Hour)
			calls := w.calls()
			<-time.After(1000 * time.Hour)
			if n := w.calls() - calls; n != 0 || !w.Idle() {
				t.Errorf("%d requests while idle (%v)", n, w.Idle())
			}
		})
		w.restored(0)
		if got := names(w.list(0, 1, 2, 3, 9)); got != "0:301-301 9:1-301" {
			t.Errorf("left are %s", got)
		}
		if w.log.Len() > 0 {
			t.Errorf("logged %s", w.log.String())
		}
	})
}

func TestRestartsNeitherDelayNorRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, func(o *compaction.Options) { o.Config.Retention.External = true })
		w.write(1)
		for range 40 {
			w.run(func() { w.commits(3) })
			w.restart()
		}
		w.run(func() { <-time.After(time.Minute) })
		// One file for each of twelve buckets of 10 seconds, four of 30, two of
		// 60, and one snapshot at the border of two minutes besides the base.
		for level, want := range map[int]int{1: 12, 2: 5, 3: 3, 9: 2} {
			if got := w.list(level); len(got) < want-1 || len(got) > want+1 {
				t.Errorf("level %d has %s, want %d files", level, names(got), want)
			}
		}
		for i, f := range w.list(1) {
			if all := w.list(1); i > 0 && f.Min != all[i-1].Max+1 {
				t.Errorf("level 1 is %s", names(all))
			}
		}
		w.restored(0)
	})
}

func TestWhatWasMissedIsCaughtUpAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, nil)
		w.write(1)
		w.commits(60) // nobody compacts
		w.restart()   // and nobody remembers
		w.run(func() {
			synctest.Wait()
			if got := len(w.list(1)); got != 6 {
				t.Errorf("%d files of level 1, want one for each of six buckets", got)
			}
		})
	})
}

func TestOnlyWhatIsConfirmedIsTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		confirmed := ltx.TXID(1)
		w := newWorking(t, func(o *compaction.Options) { o.Confirmed = func() ltx.TXID { return confirmed } })
		w.write(1)
		w.run(func() {
			w.commits(180)
			if got := w.list(1, 2, 3, 9); len(got) != 1 || len(w.list(0)) != 180 {
				t.Errorf("made or deleted something: %s", names(got))
			}
			synctest.Wait()
			confirmed = 100
			w.Wake()
			<-time.After(10 * time.Second)
			for _, f := range w.list(1, 2, 3, 9) {
				if f.Max > 100 {
					t.Errorf("%s is made of what is not confirmed", name(f))
				}
			}
			if len(w.list(1)) == 0 {
				t.Error("what was confirmed is not merged")
			}
			synctest.Wait()
			confirmed = 1000
			w.Wake()
			<-time.After(10 * time.Second)
			if got := w.list(9); got[len(got)-1].Max < 100 {
				t.Errorf("no snapshot after all was confirmed: %s", names(got))
			}
		})
		w.restored(0)
	})
}

func TestTheWorkerOutlivesAnyOutage(t *testing.T) {
	for name, fault := range map[string]storagetest.Fault{
		"everything":    {},
		"listing":       {Op: storagetest.List},
		"lists break":   {Op: storagetest.List, Effect: storagetest.BreakList, Bytes: 5},
		"reading":       {Op: storagetest.Get},
		"replies":       {Op: storagetest.Put, Effect: storagetest.LoseReply, Keys: "ltx/[1-9]/*"},
		"merged files":  {Op: storagetest.Put, Keys: "ltx/[1-9]/*", Err: storage.ErrForbidden},
		"deleting":      {Op: storagetest.Delete, Err: storage.ErrForbidden},
		"deletions hit": {Op: storagetest.Delete, Effect: storagetest.LoseReply},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorking(t, nil)
			w.write(1)
			w.run(func() {
				w.commits(25)
				w.bucket.Inject(fault)
				if fault.Op == "" {
					<-time.After(100 * time.Second)
				} else {
					w.commits(40)
				}
				w.bucket.Heal()
				w.commits(10)
				<-time.After(3 * time.Hour)
				w.commits(1)
				<-time.After(10 * time.Minute)
			})
			w.restored(0)
			if left := w.list(0, 1, 2, 3, 9); len(left) > 3 {
				t.Errorf("%s: left are %s", name, names(left))
			}
			failed, recovered := strings.Count(w.log.String(), "step failed"), strings.Count(w.log.String(), "step recovered")
			if failed != recovered || failed > 12 {
				t.Errorf("%s: %d failures and %d recoveries logged:\n%s", name, failed, recovered, w.log.String())
			}
		})
	}
}

func TestExternalRetentionNeverDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, func(o *compaction.Options) { o.Config.Retention.External = true })
		w.write(1)
		w.run(func() {
			w.commits(90)
			<-time.After(time.Hour)
		})
		if n := w.bucket.Calls(storagetest.Delete); n != 0 || len(w.list(0)) != 90 {
			t.Errorf("%d deletions, %d files of level 0 left", n, len(w.list(0)))
		}
		if !slices.ContainsFunc(w.list(9), func(f ltx.FileInfo) bool { return f.Max == 91 }) {
			t.Error("no snapshot at the end")
		}
	})
}
