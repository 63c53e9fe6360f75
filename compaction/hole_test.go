package compaction_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/internal/scratch"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

// noSnapshots keeps the schedule from making any.
func noSnapshots(o *compaction.Options) { o.Config.Snapshots = 1000 * time.Hour }

// warnings counts the lines of a level and checks that there are no others.
func (w *working) warnings() int {
	w.t.Helper()
	lines, warned := strings.Count(w.log.String(), "\n"), strings.Count(w.log.String(), "level=WARN")
	if lines != warned {
		w.t.Errorf("logged %s", w.log.String())
	}
	return warned
}

// checkLevel1 wants level 1 to hold all of the TXIDs from first to last.
func (w *working) checkLevel1(first, last ltx.TXID) {
	w.t.Helper()
	pos := first - 1
	for _, f := range w.list(1) {
		if f.Min <= pos+1 && f.Max > pos {
			pos = f.Max
		}
	}
	if pos < last {
		w.t.Errorf("level 1 is %s, want %d-%d", names(w.list(1)), first, last)
	}
}

func TestAHoleIsFilledFromWhatIsHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var content []byte
		var missing ltx.FileInfo
		var holes []compaction.Hole
		w := newWorking(t, noSnapshots)
		w.options.Refill = func(_ context.Context, h compaction.Hole) error {
			holes = append(holes, h)
			w.Uploaded(w.put(missing, content))
			return nil
		}
		w.restart()
		w.run(func() {
			w.commits(5)
			missing = w.list(0)[3]
			content = w.read(missing)
			w.remove(missing)
			w.restart()
		})
		w.run(func() { w.commits(60) })
		if want := (compaction.Hole{Level: 1, Min: 5, Max: 5}); len(holes) != 1 || holes[0] != want {
			t.Errorf("asked for %v, want %v once", holes, want)
		}
		if n := w.warnings(); n != 1 {
			t.Errorf("%d warnings, want one: %s", n, w.log.String())
		}
		w.checkLevel1(2, 60)
		w.restored(0)
	})
}

func TestASnapshotReachesOverAHoleThatNothingFills(t *testing.T) {
	for name, refill := range map[string]func(context.Context, compaction.Hole) error{
		"nothing to fill it with": nil,
		"filling fails":           func(context.Context, compaction.Hole) error { return errors.New("not in the spool") },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorking(t, noSnapshots)
			w.options.Refill = refill
			w.restart()
			w.commits(8)
			w.remove(w.list(0)[3]) // TXID 5
			w.restart()
			w.run(func() { w.commits(60) })
			snapshots := w.list(9)
			if len(snapshots) != 2 || snapshots[1].Max < 8 || snapshots[1].Max > 20 {
				t.Errorf("%s: snapshots are %s", name, names(snapshots))
			}
			for _, f := range w.list(1, 2, 3) {
				if f.Min <= 5 && f.Max >= 5 {
					t.Errorf("%s: %s claims to hold TXID 5", name, names([]ltx.FileInfo{f}))
				}
			}
			if n := w.warnings(); n != 1 {
				t.Errorf("%s: %d warnings, want one: %s", name, n, w.log.String())
			}
			w.checkLevel1(snapshots[1].Max+1, 60)
			w.restored(0)
			w.restored(4)
		})
	}
}

func TestAHoleThatStaysAfterFillingIsLeftToASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refills := 0
		w := newWorking(t, noSnapshots)
		w.options.Refill = func(context.Context, compaction.Hole) error { refills++; return nil }
		w.restart()
		w.commits(8)
		w.remove(w.list(0)[3])
		w.restart()
		w.run(func() { w.commits(60) })
		if n := w.warnings(); n != 2 || refills != 1 || len(w.list(9)) != 2 {
			t.Errorf("filled %d times, snapshots are %s, logged %s", refills, names(w.list(9)), w.log.String())
		}
		w.restored(0)
	})
}

func TestAFileThatGoesUnseenIsAHoleToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, noSnapshots)
		w.write(1)
		w.run(func() {
			w.commits(5)
			w.remove(w.list(0)[3]) // TXID 5, known to be there
			w.commits(60)
		})
		if got := w.list(9); len(got) != 2 {
			t.Errorf("snapshots are %s", names(got))
		}
		if strings.Count(w.log.String(), "level=WARN") != 1 {
			t.Errorf("logged %s", w.log.String())
		}
		w.restored(0)
	})
}

func TestAFileThatNobodyToldOfIsNoHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, noSnapshots)
		w.write(1)
		w.run(func() {
			w.commits(5)
			w.write(1)
			w.commits(20)
		})
		if w.log.Len() > 0 || len(w.list(9)) != 1 {
			t.Errorf("snapshots are %s, logged %s", names(w.list(9)), w.log.String())
		}
		w.checkLevel1(2, 20)
	})
}

func TestWithoutSnapshotsAHoleIsSaidOnceAndCostsNoRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, func(o *compaction.Options) { o.Snapshotter = nil })
		w.commits(8)
		w.remove(w.list(0)[3])
		w.restart()
		w.run(func() {
			w.commits(60)
			<-time.After(time.Hour)
			calls := w.calls()
			<-time.After(1000 * time.Hour)
			if n := w.calls() - calls; n != 0 {
				t.Errorf("%d requests while idle", n)
			}
		})
		if n := w.warnings(); n != 1 {
			t.Errorf("%d warnings, want one: %s", n, w.log.String())
		}
		if len(w.list(0)) != 63 { // all but 2 to 4, which are merged
			t.Errorf("level 0 is %s", names(w.list(0)))
		}
	})
}

func TestADamagedFileIsPassedByASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refills := 0
		w := newWorking(t, noSnapshots)
		w.options.Refill = func(context.Context, compaction.Hole) error { refills++; return nil }
		w.restart()
		w.commits(8)
		damaged := w.list(0)[3]
		b := w.read(damaged)
		b[len(b)/2] ^= 1
		w.put(damaged, b)
		w.restart()
		w.run(func() { w.commits(60) })
		if refills != 0 {
			t.Error("tried to store a file whose name is taken")
		}
		snapshots := w.list(9)
		if len(snapshots) != 2 {
			t.Fatalf("snapshots are %s", names(snapshots))
		}
		w.checkLevel1(snapshots[1].Max+1, 60)
		w.restored(0)
	})
}

func TestASnapshotOfAnotherHistoryIsNotUploaded(t *testing.T) {
	w := newWorking(t, nil)
	other := newHistory(t)
	other.random.Uint64()
	w.options.Snapshotter = other
	w.restart()
	w.write(8)
	other.write(8)
	if _, err := w.Worker.Snapshot(t.Context()); !errors.Is(err, compaction.ErrDiverged) {
		t.Errorf("got %v, want ErrDiverged", err)
	}
	if got := w.list(9); len(got) != 1 {
		t.Errorf("snapshots are %s", names(got))
	}
}

func TestASnapshotIsMadeNowUnlessNothingChanged(t *testing.T) {
	w := newWorking(t, nil)
	for _, f := range w.write(8) {
		w.Uploaded(f)
	}
	var last ltx.FileInfo
	for range 3 {
		f, err := w.Worker.Snapshot(t.Context())
		if err != nil || f.Max != 8 || f.Level != 9 {
			t.Fatalf("got %v, %v", f, err)
		}
		last = f
	}
	if got := w.list(9); len(got) != 2 || got[1].Size != last.Size || w.bucket.Calls(storagetest.Put) != 9 {
		t.Errorf("snapshots are %s after %d puts", names(got), w.bucket.Calls(storagetest.Put))
	}
}

func TestLittleScratchMakesSmallerFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, func(o *compaction.Options) { o.Snapshotter, o.Config.Retention.External = nil, true })
		w.write(1)
		w.commits(100)
		small, err := scratch.New(t.TempDir(), 3000)
		if err != nil {
			t.Fatal(err)
		}
		w.options.Config.Levels[1].Interval = time.Minute
		w.Worker = compaction.NewWorker(w.bucket, w.Replica, small, w.options)
		w.run(func() { <-time.After(10 * time.Minute) })
		w.checkLevel1(2, 101)
		if n := len(w.list(1)); n < 10 {
			t.Errorf("%d files of level 1, want many small ones", n)
		}
		if err := small.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestDeletionsWaitForTheReadsOfThisProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := &replica.Gate{}
		w := newWorking(t, func(o *compaction.Options) { o.Gate = gate })
		w.write(1)
		w.run(func() {
			done, err := gate.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w.commits(90)
			if n := len(w.list(0)); n != 90 || len(w.list(1)) == 0 {
				t.Errorf("%d files of level 0 during a read, %d of level 1", n, len(w.list(1)))
			}
			done()
			<-time.After(time.Minute)
			if n := len(w.list(0)); n > 40 {
				t.Errorf("%d files of level 0 after it", n)
			}
		})
		w.restored(0)
	})
}
