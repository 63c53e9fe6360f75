package replica_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

func TestPositionOfAnyTransaction(t *testing.T) {
	h := newHistory(t, 512)
	var want []ltx.Pos
	for range 8 {
		h.write(1, 10+uint32(h.pos.TXID))
		want = append(want, h.pos)
	}
	h.merge(1, 3, 6)
	h.remove(file(0, 6, 6))
	for i, pos := range want {
		at, err := h.PosAt(t.Context(), pos.TXID)
		if err != nil || at.Pos != pos || at.PageSize != 512 || at.Commit != uint32(10+i) {
			t.Errorf("got %+v, %v; want %v", at, err, pos)
		}
	}
	h.remove(file(0, 4, 4))
	var e *replica.UnreachableError
	if _, err := h.PosAt(t.Context(), 4); !errors.As(err, &e) || e.Earlier != 3 || e.Later != 6 {
		t.Errorf("a transaction that was merged: got %v", err)
	}
	h.bucket.Inject(storagetest.Fault{Op: storagetest.Get, Err: storage.ErrNotFound, Times: 2})
	if at, err := h.PosAt(t.Context(), 8); err != nil || at.Pos != h.pos {
		t.Errorf("files that vanish: got %+v, %v", at, err)
	}
}

// touched is what Touched yields.
func (h *history) touched(after, through ltx.TXID) ([]uint32, error) {
	h.t.Helper()
	var pages []uint32
	for pgno, err := range h.Touched(h.t.Context(), after, through) {
		if err != nil {
			return pages, err
		}
		pages = append(pages, pgno)
	}
	return pages, nil
}

func TestTouchedPagesHoldAllThatDiffers(t *testing.T) {
	h := newHistory(t, 512)
	for _, pages := range []uint32{300, 310, 290, 290, 40, 40, 200, 200, 220, 220, 220, 230} {
		h.write(1, pages)
	}
	h.merge(1, 4, 9)
	h.remove(file(0, 6, 6))
	for after := ltx.TXID(1); after <= 12; after++ {
		for through := after; through <= 12; through++ {
			got, err := h.touched(after, through)
			if after < 6 && through >= 6 && through <= 8 {
				if !errors.Is(err, replica.ErrUnreachable) {
					t.Errorf("%d to %d over a hole: got %v", after, through, err)
				}
				continue
			}
			if err != nil || !slices.IsSorted(got) || (after == through) != (len(got) == 0) {
				t.Errorf("%d to %d: got %d pages, %v", after, through, len(got), err)
			}
			h.checkTouched(got, h.images[after], h.images[through])
		}
	}
	if got, err := h.touched(11, 12); err != nil || len(got) > 13 {
		t.Errorf("of one small transaction: got %v, %v", got, err)
	}
}

// checkTouched fails unless all pages of two images that differ are touched.
func (h *history) checkTouched(touched []uint32, a, b []byte) {
	h.t.Helper()
	size := int(h.pageSize)
	for at := 0; at < min(len(a), len(b)); at += size {
		pgno := uint32(at/size) + 1
		if !bytes.Equal(a[at:at+size], b[at:at+size]) && !slices.Contains(touched, pgno) {
			h.t.Fatalf("page %d differs and was not touched: %v; %d and %d bytes", pgno, touched, len(a), len(b))
		}
	}
}

func TestAStateIsFoundByItsChecksum(t *testing.T) {
	h := newHistory(t, 512)
	sums := map[ltx.TXID]ltx.Checksum{}
	for range 150 {
		h.write(1, 10)
		sums[h.pos.TXID] = h.pos.PostApplyChecksum
	}
	h.merge(1, 3, 6)
	h.remove(file(0, 6, 6))
	h.remove(file(0, 7, 7))
	h.put(file(0, 9, 9), []byte("short"))
	for txid, want := range map[ltx.TXID]ltx.TXID{150: 150, 149: 149, 20: 20, 6: 6, 1: 1, 7: 0, 9: 0} {
		if got, err := h.Find(t.Context(), sums[txid]); err != nil || got != want {
			t.Errorf("the state of %d: got %v, %v; want %v", txid, got, err, want)
		}
	}
	h.bucket.FailKeys("ltx/*/*")
	if got, err := h.Find(t.Context(), sums[3]); err == nil {
		t.Errorf("a bucket that fails: got %v without an error", got)
	}
}
