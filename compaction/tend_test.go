package compaction_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

func TestWhatIsDueLaterIsDoneByAWorkerForEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &compaction.Clock{}
		w := newWorking(t, func(o *compaction.Options) { o.Clock = clock })
		w.write(1)
		w.commits(50)
		var last time.Time
		times := 0
		for next := time.Now(); !next.IsZero(); times++ {
			if times > 30 || next.Before(last) {
				t.Fatalf("the time after %d times is %s, the one before was %s", times, next, last)
			}
			<-time.After(time.Until(next))
			last = time.Now()
			w.restart()
			var err error
			if next, err = w.Tend(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := names(w.list(0, 1, 2, 3, 9)); got != "0:51-51 9:1-51" {
			t.Errorf("left are %s", got)
		}
		w.restored(0)
		if n := w.bucket.Calls(storagetest.List); n > 4*times {
			t.Errorf("%d lists for %d times", n, times)
		}
	})
}

func TestTheStatusTellsWhatIsThereAndWhatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, nil)
		w.write(3)
		if s := w.Status(); s.Listed {
			t.Errorf("it was not listed yet: %+v", s)
		}
		w.bucket.FailNext(1)
		if _, err := w.Tend(t.Context()); !errors.Is(err, storagetest.ErrInjected) {
			t.Errorf("got %v", err)
		}
		began := time.Now()
		<-time.After(time.Minute)
		if s := w.Status(); !errors.Is(s.Error, storagetest.ErrInjected) || !s.Since.Equal(began) {
			t.Errorf("got %+v, want the failure of %s", s, began)
		}
		if _, err := w.Tend(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := w.Status()
		if s.Error != nil || !s.Since.IsZero() || !s.Listed || s.Files[0] != len(w.list(0)) || s.Files[1] != len(w.list(1)) || s.Snapshot.Max != 1 {
			t.Errorf("got %+v", s)
		}
	})
}

func TestWhatIsDueOfAnUploadIsKnownWithoutAWorker(t *testing.T) {
	at := time.Date(2024, 1, 2, 3, 4, 17, 0, time.UTC)
	for _, c := range []struct {
		levels compaction.Levels
		want   time.Duration
	}{
		{compaction.DefaultLevels(), 14 * time.Second},
		{compaction.Levels{{}, {1, time.Second}}, 1100 * time.Millisecond},
		{compaction.Levels{{}}, time.Hour - 4*time.Minute - 17*time.Second},
	} {
		config := compaction.Config{Levels: c.levels, Snapshots: time.Hour}
		if got := config.After(at).Sub(at); got != c.want {
			t.Errorf("%v: due after %s, want %s", c.levels, got, c.want)
		}
	}
}
