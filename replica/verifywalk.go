package replica

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-io/tidemark/ltx"
)

// walk goes from state to state in the smallest steps there are, keeping the
// page sums, and puts every file on the first state that it can follow.
type walk struct {
	*verifier
	sums      *ltx.PageSums
	pos       ltx.Pos  // TXID 0: no state yet
	steps     []*proof // increments not reached yet, by Min
	snapshots []*proof // by Max
	active    []*proof // increments that follow the position
	leaves    map[*proof]ltx.Checksum
}

func (w *walk) run(ctx context.Context, sound []*proof) error {
	w.leaves = map[*proof]ltx.Checksum{}
	w.pos.PostApplyChecksum = ltx.ChecksumFlag
	for _, p := range sound {
		switch {
		case p.IsSnapshot():
			w.snapshots = append(w.snapshots, p)
		case !p.bare():
			w.steps = append(w.steps, p)
		}
	}
	slices.SortStableFunc(w.steps, func(a, b *proof) int { return cmp.Compare(a.Min, b.Min) })
	slices.SortStableFunc(w.snapshots, func(a, b *proof) int { return cmp.Compare(a.Max, b.Max) })
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		moved, err := w.step()
		if err != nil {
			return err
		}
		if !moved {
			break
		}
		w.settle()
	}
	w.result.Proven = w.pos
	return nil
}

// step moves to the next state, by an increment if there is one.
func (w *walk) step() (bool, error) {
	if w.pos.TXID > 0 {
		for len(w.steps) > 0 && w.steps[0].Min-1 <= w.pos.TXID {
			p := w.steps[0]
			w.steps = w.steps[1:]
			if p.Max <= w.pos.TXID {
				continue
			}
			if err := w.check(p); err != nil {
				return false, err
			}
			w.active = append(w.active, p)
		}
	}
	w.active = slices.DeleteFunc(w.active, func(p *proof) bool { return p.bad || p.Max <= w.pos.TXID })
	if len(w.active) > 0 {
		next := slices.MinFunc(w.active, func(a, b *proof) int {
			return cmp.Or(cmp.Compare(a.Max, b.Max), cmp.Compare(a.Level, b.Level))
		})
		return true, w.apply(next)
	}
	for len(w.snapshots) > 0 {
		p := w.snapshots[0]
		w.snapshots = w.snapshots[1:]
		if p.Max > w.pos.TXID && !p.bad {
			if err := w.sums.Reset(); err != nil {
				return false, err
			}
			w.pos.PostApplyChecksum = ltx.ChecksumFlag
			w.leaves[p] = ltx.ChecksumFlag | p.xor
			return true, w.apply(p)
		}
	}
	return false, nil
}

// check puts the pages of an increment on the state and compares the sum with
// what the file says.
func (w *walk) check(p *proof) error {
	before := w.pos.PostApplyChecksum
	if p.header.PageSize != w.sums.PageSize() {
		w.fault(p, fmt.Sprintf("its pages have %d bytes, those of transaction %s before it %d",
			p.header.PageSize, w.pos.TXID, w.sums.PageSize()), adviceMisfit)
		return nil
	}
	if pre := p.header.PreApplyChecksum; pre != 0 && p.Min-1 == w.pos.TXID && pre != before {
		w.fault(p, fmt.Sprintf("it applies to a database with checksum %s, transaction %s leaves %s", pre, w.pos.TXID, before), adviceMisfit)
		return nil
	}
	sum := before
	err := w.each(p, func(pgno uint32, now ltx.Checksum) error {
		old, err := w.sums.Sum(pgno)
		sum ^= old ^ now
		return err
	})
	if err != nil {
		return err
	}
	if p.header.Commit < w.sums.Pages() {
		gone, err := w.sums.Tail(p.header.Commit)
		if err != nil {
			return err
		}
		sum ^= gone
	}
	sum |= ltx.ChecksumFlag
	w.leaves[p] = sum
	if p.post != 0 && p.post != sum {
		w.fault(p, fmt.Sprintf("its pages make transaction %s a database with checksum %s, it says %s", w.pos.TXID, sum, p.post), adviceMisfit)
	}
	return nil
}

// apply makes the state after p the position.
func (w *walk) apply(p *proof) error {
	if err := w.sums.Begin(); err != nil {
		return err
	}
	if err := w.each(p, w.sums.Set); err != nil {
		return err
	}
	w.pos = ltx.Pos{TXID: p.Max, PostApplyChecksum: w.leaves[p]}
	return w.sums.Commit(w.pos, p.header.PageSize, p.header.Commit)
}

// settle compares the state with what other files leave that end there.
func (w *walk) settle() {
	for _, p := range append(slices.Clone(w.active), w.snapshots...) {
		if p.Max != w.pos.TXID || p.bad {
			continue
		}
		leaves, ok := w.leaves[p]
		if p.IsSnapshot() {
			leaves, ok = ltx.ChecksumFlag|p.xor, true
		}
		if ok && leaves != w.pos.PostApplyChecksum {
			w.fault(p, fmt.Sprintf("it leaves a database with checksum %s at transaction %s, the files below it %s",
				leaves, w.pos.TXID, w.pos.PostApplyChecksum), adviceMisfit)
		}
	}
}
