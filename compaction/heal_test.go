package compaction_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

// everything is a slice that holds all files.
func everything() compaction.Slice { return compaction.Slice{Files: 1000, Bytes: 1 << 30} }

func TestADamagedNewestSnapshotIsReplacedThoughNothingChanged(t *testing.T) {
	for name, running := range map[string]bool{"running": true, "not running": false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorking(t, nil)
			w.commits(30)
			f, err := w.Worker.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w.damage(f)
			prove := func() {
				p, err := w.Prove(t.Context(), compaction.Cursor{}, everything())
				if err != nil || len(p.Damaged) != 1 {
					t.Errorf("%s: got %v, %v", name, p.Damaged, err)
				}
				synctest.Wait()
			}
			if running {
				w.run(prove)
			} else {
				prove()
			}
			if got := names(w.list(8, 9)); got != "8:1-30 9:1-1" {
				t.Errorf("%s: snapshots are %s", name, got)
			}
			w.restored(0)
			w.restart()
			if p, err := w.Prove(t.Context(), compaction.Cursor{}, everything()); err != nil || len(p.Damaged) != 0 {
				t.Errorf("%s: damaged still: %v, %v", name, p.Damaged, err)
			}
			w.run(func() { w.commits(300) })
			if got := w.list(8); len(got) != 0 {
				t.Errorf("%s: the stand-in outlives newer snapshots: %s", name, names(got))
			}
			w.restored(0)
		})
	}
}

func TestAnOrderReplacesANewestSnapshotThatIsDamaged(t *testing.T) {
	w := newWorking(t, nil)
	w.write(5)
	f, err := w.Worker.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.damage(f)
	again, err := w.Worker.Snapshot(t.Context())
	if err != nil || again.Max != 5 || again == f {
		t.Errorf("got %v, %v", again, err)
	}
	if got := names(w.list(8, 9)); got != "8:1-5 9:1-1" {
		t.Errorf("snapshots are %s", got)
	}
	w.restored(0)
	if last, err := w.Worker.Snapshot(t.Context()); err != nil || last != again {
		t.Errorf("got %v, %v", last, err)
	}
}

func TestADamagedSnapshotStaysUntilAnotherStandsInForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, nil)
		w.commits(30)
		f, err := w.Worker.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.damage(f)
		w.bucket.Inject(storagetest.Fault{Op: storagetest.Put})
		if _, err := w.Prove(t.Context(), compaction.Cursor{}, everything()); err == nil {
			t.Error("no error though nothing can be stored")
		}
		if n := w.bucket.Calls(storagetest.Delete); n != 0 {
			t.Errorf("%d deletions", n)
		}
		w.bucket.Heal()
		if got := names(w.list(8, 9)); got != "9:1-1 9:1-30" {
			t.Errorf("snapshots are %s", got)
		}
		w.restored(0)
	})
}

func TestADamagedFileExpiresAsOthersDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, noSnapshots)
		w.write(1)
		w.run(func() {
			w.commits(15)
			bad := w.list(0)[12]
			w.damage(bad)
			if _, err := w.Prove(t.Context(), compaction.Cursor{}, everything()); err != nil {
				t.Fatal(err)
			}
			w.commits(300)
			<-time.After(time.Minute)
			for _, f := range w.list(0) {
				if f.Max == bad.Max {
					t.Errorf("%s is there still", w.Key(bad))
				}
			}
		})
		w.restored(0)
	})
}
