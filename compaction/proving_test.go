package compaction_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-io/tidemark/compaction"
)

func TestEveryFileIsProvenInSlices(t *testing.T) {
	w := newWorking(t, nil)
	w.write(10)
	var at compaction.Cursor
	files, slices := 0, 0
	for {
		p, err := w.Prove(t.Context(), at, compaction.Slice{Files: 3, Bytes: 1 << 20})
		if err != nil || len(p.Damaged) > 0 || p.Files > 3 {
			t.Fatalf("got %+v, %v", p, err)
		}
		files, slices, at = files+p.Files, slices+1, p.Next
		if at == (compaction.Cursor{}) {
			break
		}
	}
	if want := len(w.list(0, 9)); files != want || slices < 3 {
		t.Errorf("%d files in %d slices, want %d", files, slices, want)
	}
	if p, err := w.Prove(t.Context(), compaction.Cursor{}, compaction.Slice{Files: 100, Bytes: 1}); err != nil || p.Files != 1 {
		t.Errorf("got %+v, %v for a slice of one byte", p, err)
	}
}

func TestADamagedFileIsFoundAndASnapshotStandsInForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, nil)
		w.write(1)
		w.run(func() {
			w.commits(5)
			bad := w.list(0)[2]
			content := w.read(bad)
			content[len(content)/2] ^= 1
			w.put(bad, content)
			p, err := w.Prove(t.Context(), compaction.Cursor{}, compaction.Slice{Files: 100, Bytes: 1 << 20})
			if err != nil || len(p.Damaged) != 1 || p.Damaged[0].File.Max != bad.Max {
				t.Fatalf("got %+v, %v", p, err)
			}
			<-time.After(time.Minute)
			newest := w.list(9)
			if f := newest[len(newest)-1]; f.Max < bad.Max {
				t.Errorf("no snapshot stands in for %s", w.Key(bad))
			}
		})
		w.restored(0)
	})
}
