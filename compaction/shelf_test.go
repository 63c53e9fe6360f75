package compaction_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/internal/scratch"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

// withShelf has everything kept on a shelf that is stored.
func withShelf(w *working, limit int64) *compaction.Shelf {
	shelf := compaction.NewShelf(w.scratch, limit)
	w.t.Cleanup(func() {
		if err := shelf.Close(); err != nil {
			w.t.Error(err)
		}
	})
	w.options.Shelf = shelf
	w.restart()
	return shelf
}

// kept stores one commit a second, and keeps it.
func (w *working) kept(shelf *compaction.Shelf, n int) {
	w.t.Helper()
	for range n {
		for _, f := range w.write(1) {
			if err := shelf.Keep(w.Replica, f, bytes.NewReader(w.read(f))); err != nil {
				w.t.Error(err)
			}
			w.Uploaded(f)
		}
		<-time.After(time.Second)
	}
}

// damage flips a bit in the middle of a file on the bucket.
func (w *working) damage(f ltx.FileInfo) {
	w.t.Helper()
	b := w.read(f)
	b[len(b)/2] ^= 1
	w.put(f, b)
}

func TestWhatIsHereIsNotFetched(t *testing.T) {
	gets := func(shelved bool) (n int) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorking(t, func(o *compaction.Options) { noSnapshots(o); o.Config.Retention.External = true })
			shelf := withShelf(w, 1<<20)
			if !shelved {
				w.options.Shelf = nil
				w.restart()
			}
			before := 0
			w.run(func() {
				w.kept(shelf, 1)
				w.kept(shelf, 180)
				before = 181 // reads by the test itself
				if len(w.list(3)) < 2 {
					t.Errorf("level 3 is %s", names(w.list(3)))
				}
			})
			n = w.bucket.Calls(storagetest.Get) - before
			w.restored(0)
		})
		return n
	}
	with, without := gets(true), gets(false)
	t.Logf("%d requests with copies, %d without", with, without)
	if with != 0 || without < 180 {
		t.Errorf("%d requests with copies, %d without", with, without)
	}
}

func TestAShelfIsBoundedAndDropsTheOldest(t *testing.T) {
	w := newWorking(t, nil)
	shelf := withShelf(w, 16<<10)
	for i := range 200 {
		f := w.write(1)[0]
		if err := shelf.Keep(w.Replica, f, bytes.NewReader(w.read(f))); err != nil {
			t.Fatal(err)
		}
		if used := w.scratch.Used(); used > 16<<10 || i > 100 && used < 8<<10 {
			t.Fatalf("%d bytes are in use after %d files", used, i)
		}
	}
	small, err := scratch.New(t.TempDir(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	full, err := small.Create()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := full.Write(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	f := ltx.FileInfo{Min: 2, Max: 2, Size: 10}
	if err := compaction.NewShelf(small, 1<<20).Keep(w.Replica, f, bytes.NewReader(make([]byte, 10))); err != nil {
		t.Errorf("a full scratch space is an error of the shelf: %v", err)
	}
	if err := small.Close(); err != nil {
		t.Error(err)
	}
}

func TestAHoleIsFilledFromTheShelf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, func(o *compaction.Options) { noSnapshots(o); o.Config.Retention.External = true })
		shelf := withShelf(w, 1<<20)
		w.run(func() {
			w.kept(shelf, 8)
			gone := w.list(0)[3:5] // TXIDs 5 and 6
			w.remove(gone...)
			w.restart() // a listing shows it
		})
		w.run(func() { w.kept(shelf, 40) })
		if n := w.warnings(); n != 1 || len(w.list(9)) != 1 {
			t.Errorf("snapshots are %s, logged %s", names(w.list(9)), w.log.String())
		}
		w.checkLevel1(2, 40)
		w.restored(0)
		w.restored(5)
	})
}

func TestWhatIsMissedInAListingIsPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, noSnapshots)
		shelf := withShelf(w, 1<<20)
		w.run(func() {
			w.kept(shelf, 30)
			gone := w.list(0)[28] // merged by now, or not: from the copy
			w.remove(gone)
			w.kept(shelf, 10) // and something expires
			if !slices.ContainsFunc(w.list(0), func(f ltx.FileInfo) bool { return f.Max == gone.Max }) {
				t.Errorf("level 0 is %s, without %s", names(w.list(0)), w.Key(gone))
			}
			w.kept(shelf, 300)
			if n := len(w.list(0)); n > 40 {
				t.Errorf("%d files of level 0: what expired is put back", n)
			}
		})
		if n := w.warnings(); n != 1 {
			t.Errorf("%d warnings: %s", n, w.log.String())
		}
		w.restored(0)
	})
}

func TestADamagedCopyIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, func(o *compaction.Options) { noSnapshots(o); o.Config.Retention.External = true })
		shelf := withShelf(w, 1<<20)
		w.run(func() {
			w.kept(shelf, 8)
			gone := w.list(0)[3]
			b := w.read(gone)
			b[len(b)/2] ^= 1
			if err := shelf.Keep(w.Replica, gone, bytes.NewReader(b)); err != nil {
				t.Error(err)
			}
			w.remove(gone)
			w.restart()
		})
		w.run(func() { w.kept(shelf, 40) })
		if got := w.list(9); len(got) != 2 {
			t.Errorf("snapshots are %s", names(got))
		}
		w.checkLevel1(w.list(9)[1].Max+1, 40)
		w.restored(0)
	})
}

func TestADamagedFileIsStoredAgainFromTheShelf(t *testing.T) {
	for _, level := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorking(t, noSnapshots)
			shelf := withShelf(w, 1<<20)
			w.run(func() {
				w.kept(shelf, 25)
				bad := w.list(level)[0]
				w.damage(bad)
				p, err := w.Prove(t.Context(), compaction.Cursor{}, compaction.Slice{Files: 1000, Bytes: 1 << 20})
				if err != nil || len(p.Damaged) != 1 || !strings.Contains(p.Damaged[0].Error(), "stored again") {
					t.Errorf("level %d: got %v, %v", level, p.Damaged, err)
				}
				if _, _, err := ltx.VerifyFile(bytes.NewReader(w.read(bad))); err != nil {
					t.Errorf("level %d: %s is damaged still: %v", level, w.Key(bad), err)
				}
			})
			if n := w.warnings(); n != 1 || len(w.list(9)) != 1 {
				t.Errorf("snapshots are %s, logged %s", names(w.list(9)), w.log.String())
			}
			w.restored(0)
		})
	}
}

func TestTheNewestNameIsNotGivenFreeForRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, noSnapshots)
		shelf := withShelf(w, 1<<20)
		w.run(func() {
			w.kept(shelf, 5)
			raw := w.list(0)
			bad := raw[len(raw)-1]
			w.damage(bad)
			p, err := w.Prove(t.Context(), compaction.Cursor{}, compaction.Slice{Files: 1000, Bytes: 1 << 20})
			if err != nil || len(p.Damaged) != 1 || w.bucket.Calls(storagetest.Delete) != 0 {
				t.Errorf("got %v, %v after %d deletions", p.Damaged, err, w.bucket.Calls(storagetest.Delete))
			}
			<-time.After(time.Minute)
		})
		if got := names(w.list(9)); got != fmt.Sprintf("9:1-1 9:1-%d", w.pos.TXID) {
			t.Errorf("snapshots are %s", got)
		}
		w.restored(0)
	})
}
