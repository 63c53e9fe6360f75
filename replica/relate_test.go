package replica_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

func TestHowALocalHistoryStandsToTheReplica(t *testing.T) {
	h := newHistory(t, 512)
	var all []ltx.Pos
	for range 10 {
		h.write(1, 20)
		all = append(all, h.pos)
	}
	at := func(txid int) ltx.Pos { return all[txid-1] }
	other := func(txid int) ltx.Pos {
		return ltx.Pos{TXID: ltx.TXID(txid), PostApplyChecksum: at(min(txid, 10)).PostApplyChecksum ^ 1}
	}
	h.merge(1, 3, 6)
	for _, txid := range []ltx.TXID{4, 5} {
		h.remove(file(0, txid, txid))
	}
	for name, c := range map[string]struct {
		base ltx.Pos
		tail []ltx.Pos
		want replica.Relation
		at   ltx.TXID
	}{
		"the same end":                     {base: at(10), want: replica.Equal, at: 10},
		"the same end, by a tail":          {base: at(7), tail: []ltx.Pos{at(8), at(9), at(10)}, want: replica.Equal, at: 10},
		"an older state":                   {base: at(8), want: replica.Behind, at: 8},
		"an older state that is merged":    {base: at(4), want: replica.Behind},
		"uploaded after all":               {base: at(7), tail: []ltx.Pos{at(8), at(9)}, want: replica.Behind, at: 9},
		"a tail on the end":                {base: at(10), tail: []ltx.Pos{other(11), other(12)}, want: replica.Ahead, at: 10},
		"part of the tail is there":        {base: at(9), tail: []ltx.Pos{at(10), other(11)}, want: replica.Ahead, at: 10},
		"another file in the tail's place": {base: at(8), tail: []ltx.Pos{other(9)}, want: replica.Diverged, at: 8},
		"another one at the end":           {base: at(8), tail: []ltx.Pos{at(9), other(10), other(11)}, want: replica.Diverged, at: 9},
		"a tail where nothing is known":    {base: at(3), tail: []ltx.Pos{other(4), other(5)}, want: replica.Diverged, at: 3},
		"another base":                     {base: other(8), want: replica.Diverged},
		"a base beyond the end":            {base: other(12), want: replica.Unknown},
	} {
		got, txid, err := h.Relate(t.Context(), c.base, c.tail)
		if err != nil || got != c.want || txid != c.at {
			t.Errorf("%s: got %v at %d, %v; want %v at %d", name, got, txid, err, c.want, c.at)
		}
	}
}

func TestRelationsToAnEmptyAndToAFailingReplica(t *testing.T) {
	h := newHistory(t, 512)
	some := ltx.Pos{TXID: 1, PostApplyChecksum: ltx.ChecksumFlag | 5}
	if got, _, err := h.Relate(t.Context(), ltx.Pos{}, []ltx.Pos{some}); err != nil || got != replica.Ahead {
		t.Errorf("a first base: got %v, %v", got, err)
	}
	if got, _, err := h.Relate(t.Context(), some, nil); err != nil || got != replica.Unknown {
		t.Errorf("the replica is gone: got %v, %v", got, err)
	}
	h.write(3, 20)
	h.bucket.Inject(storagetest.Fault{Op: storagetest.List, Err: storage.ErrForbidden})
	if _, _, err := h.Relate(t.Context(), h.pos, nil); !errors.Is(err, storage.ErrForbidden) {
		t.Errorf("got %v", err)
	}
}

func TestAClaimShutsTheFormerWriterOut(t *testing.T) {
	h := newHistory(t, 512)
	h.write(3, 20)
	tip, err := h.Tip(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const node = 7<<32 | 0xabcdef
	for range 2 { // the second one is the first one's answer that was lost
		pos, err := h.Claim(t.Context(), tip, node)
		if err != nil || pos != (ltx.Pos{TXID: 4, PostApplyChecksum: h.pos.PostApplyChecksum}) {
			t.Fatalf("got %v, %v", pos, err)
		}
	}
	if g, err := h.Generation(t.Context()); err != nil || g != 7 {
		t.Errorf("generation %d, %v; want 7", g, err)
	}
	var taken *replica.TakenError
	if _, err := h.Claim(t.Context(), tip, node+1<<32); !errors.As(err, &taken) || !errors.Is(err, replica.ErrTaken) || taken.File.Max != 4 {
		t.Errorf("another claim there: got %v", err)
	}
	late := h.capture(t.TempDir())
	if _, err := h.Upload(t.Context(), late); !errors.Is(err, replica.ErrFenced) {
		t.Errorf("a late upload of the former writer: got %v", err)
	}
	image := bytes.Clone(h.images[3])
	if _, got, err := h.restore(4); err != nil || !bytes.Equal(got, image) {
		t.Errorf("restore to the claim: %v", err)
	}
}

func TestAClaimInAHoleIsTakenBack(t *testing.T) {
	for name, bury := range map[string]func(*history){
		"covered by a merged file": func(h *history) {
			h.write(3, 20)
			h.merge(1, 4, 6)
			for txid := ltx.TXID(4); txid <= 5; txid++ {
				h.remove(file(0, txid, txid))
			}
		},
		"followed in level 0": func(h *history) {
			h.write(2, 20)
			h.remove(file(0, 4, 4))
		},
	} {
		h := newHistory(t, 512)
		h.write(3, 20)
		tip, err := h.Tip(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		bury(h)
		if _, err := h.Claim(t.Context(), tip, 1<<32); !errors.Is(err, replica.ErrTaken) {
			t.Errorf("%s: got %v", name, err)
		}
		files, err := h.Files(t.Context(), 0)
		if err != nil || slices.ContainsFunc(files, func(f ltx.FileInfo) bool { return f.Max == 4 }) {
			t.Errorf("%s: the claim is still there: %v, %v", name, files, err)
		}
	}
}

func TestAClaimThatFailsIsNoClaim(t *testing.T) {
	h := newHistory(t, 512)
	h.write(3, 20)
	tip, err := h.Tip(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.bucket.Inject(storagetest.Fault{Op: storagetest.List, Times: 1})
	if _, err := h.Claim(t.Context(), tip, 1<<32); err == nil || errors.Is(err, replica.ErrTaken) {
		t.Errorf("when it cannot look again: got %v", err)
	}
	if _, err := h.Claim(t.Context(), tip, 1<<32); err != nil {
		t.Errorf("the next attempt: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Claim(ctx, tip, 1<<32); err == nil {
		t.Error("a claim without a context")
	}
	if _, err := h.Claim(t.Context(), replica.Tip{}, 1); err == nil {
		t.Error("a claim on nothing")
	}
}

func TestAPromotionByClaim(t *testing.T) {
	p := newPrimary(t, 1024)
	f := p.follow()
	p.exec(rows(5, 300))
	tip := f.catchUp()
	p.exec(rows(5, 300)) // the former primary's last one, which the claim runs into
	if _, err := p.Claim(t.Context(), tip, 2<<32); !errors.Is(err, replica.ErrTaken) {
		t.Fatalf("got %v", err)
	}
	pos, err := p.Claim(t.Context(), f.catchUp(), 2<<32)
	if err != nil {
		t.Fatal(err)
	}
	p.pos = pos
	f.catchUp()
	f.promote()
	p.exec(rows(5, 300))
	f.catchUp()
	f.promote()
}
