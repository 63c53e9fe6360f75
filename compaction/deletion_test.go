package compaction_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

func TestNothingIsDeletedForAFileThatIsGoneItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, func(o *compaction.Options) { o.Config.Levels = o.Config.Levels[:2]; noSnapshots(o) })
		w.write(1)
		w.run(func() {
			w.commits(10)
			<-time.After(10 * time.Second)
			merged := w.list(1)
			if len(merged) != 1 {
				t.Fatalf("level 1 is %s", names(merged))
			}
			w.remove(merged...) // as a lifecycle rule might
			<-time.After(time.Hour)
		})
		if n := len(w.list(0)); n != 10 {
			t.Errorf("%d files of level 0 are left, want all", n)
		}
		w.restored(0)
	})
}

func TestAgeIsToldByTheClockOfTheBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, noSnapshots)
		w.clock.behind = 7 * time.Second
		w.write(1)
		w.run(func() {
			w.commits(120)
			now := time.Now().Add(-w.clock.behind)
			kept := map[ltx.TXID]bool{}
			for _, f := range w.list(0) {
				kept[f.Max] = true
			}
			for txid := w.pos.TXID; txid > 1; txid-- {
				age := now.Sub(w.clock.time(w.Key(ltx.FileInfo{Min: txid, Max: txid})))
				if age < w.options.Config.Retention.Level0 && !kept[txid] {
					t.Errorf("TXID %d is gone at an age of %v", txid, age)
				}
			}
			if len(kept) > 60 {
				t.Errorf("%d files are left: nothing is deleted", len(kept))
			}
		})
	})
}

// refusing refuses to delete some keys, each with an error of its own.
type refusing struct {
	storage.Bucket
	suffix string
}

func (r refusing) Delete(ctx context.Context, keys ...string) error {
	var errs []error
	for _, key := range keys {
		if strings.HasSuffix(key, r.suffix) {
			errs = append(errs, errors.New("delete "+key+": object lock"))
			continue
		}
		errs = append(errs, r.Bucket.Delete(ctx, key))
	}
	return errors.Join(errs...)
}

func TestEachKeyThatCannotBeDeletedIsNamed(t *testing.T) {
	h := newHistory(t)
	files := h.write(20)
	merged, err := h.merger().Merge(t.Context(), level1(files[1:]))
	if err != nil {
		t.Fatal(err)
	}
	b := refusing{h.bucket, "3.ltx"}
	r := compaction.NewRetainer(b, h.Replica, nil, compaction.Retention{Level0: time.Second, Window: time.Hour})
	later := merged.ModTime.Add(time.Minute)
	_, err = r.Expire(t.Context(), h.list(0, 1, 9), all, later)
	if err == nil || strings.Count(err.Error(), "object lock") != 2 ||
		!strings.Contains(err.Error(), h.Key(files[2])) || !strings.Contains(err.Error(), h.Key(files[18])) {
		t.Errorf("got %v, want both keys that end in 3", err)
	}
	if got := names(h.list(0)); got != "0:3-3 0:19-19 0:20-20" {
		t.Errorf("left are %s", got)
	}
	external := compaction.NewRetainer(h.bucket, h.Replica, nil, compaction.Retention{Level0: 1, Window: 1, External: true})
	if expired, err := external.Expire(t.Context(), h.list(0, 1, 9), all, later); len(expired) != 0 || err != nil {
		t.Errorf("external retention deleted %s, %v", names(expired), err)
	}
}

// breaking deletes so many keys of a request, and breaks off.
type breaking struct {
	storage.Bucket
	after int
}

func (b breaking) Delete(ctx context.Context, keys ...string) error {
	if len(keys) <= b.after {
		return b.Bucket.Delete(ctx, keys...)
	}
	return errors.Join(b.Bucket.Delete(ctx, keys[:b.after]...), errors.New("broken off"))
}

func TestADeletionThatBreaksOffLeavesNothingUnreachable(t *testing.T) {
	h := newHistory(t)
	files := h.write(20)
	merged, err := h.merger().Merge(t.Context(), level1(files[1:]))
	if err != nil {
		t.Fatal(err)
	}
	r := compaction.NewRetainer(breaking{h.bucket, 7}, h.Replica, nil, compaction.Retention{Level0: time.Second, Window: time.Hour})
	if _, err := r.Expire(t.Context(), h.list(0, 1, 9), all, merged.ModTime.Add(time.Minute)); err == nil {
		t.Fatal("no error")
	}
	left := h.list(0)
	if len(left) != 12 {
		t.Fatalf("left are %s", names(left))
	}
	for _, f := range left {
		h.restored(f.Max)
	}
}

func TestALocalClockFarAheadDeletesNothingEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, noSnapshots)
		w.clock.behind = 1000 * time.Hour
		w.write(1)
		w.run(func() { w.commits(15) })
		w.options.Clock = &compaction.Clock{} // and no upload tells the time
		w.restart()
		w.run(func() {
			<-time.After(4 * time.Second)
			if n := len(w.list(0)); n != 15 {
				t.Errorf("%d files of level 0 are left, want all", n)
			}
			<-time.After(time.Hour)
			if got := names(w.list(0)); got != "0:16-16" {
				t.Errorf("left are %s: without an upload nothing expires", got)
			}
		})
		w.restored(0)
	})
}

func TestAfterARestartWhatIsOldGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, noSnapshots)
		w.commits(60) // nobody deletes
		w.restart()
		w.run(func() { <-time.After(20 * time.Second) })
		if n := len(w.list(0)); n > 30 {
			t.Errorf("%d files of level 0 are left", n)
		}
		w.restored(0)
	})
}

func TestAListingThatIsHandedOnIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, nil)
		w.write(1)
		w.run(func() { w.commits(15) })
		w.restart()
		tip, files, err := w.Survey(t.Context())
		if err != nil || tip.Pos.TXID != 16 || len(files) != len(w.list(0, 1, 2, 3, 9)) {
			t.Fatalf("got %v, %s, %v", tip, names(files), err)
		}
		before := w.bucket.Calls(storagetest.List)
		w.Listed(files)
		w.run(func() { w.commits(3) })
		if n := w.bucket.Calls(storagetest.List) - before; n != 0 {
			t.Errorf("%d listings after one that was handed on", n)
		}
		w.Listed(nil)
		if s := w.Status(); s.Files[0] != 18 {
			t.Errorf("%d files of level 0 are known, want 18", s.Files[0])
		}
	})
}
