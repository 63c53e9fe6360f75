package replica

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/storage"
)

// Advance brings page sums from their position to the newest state of the
// replica, file by file; done, asked after each, ends it early. It returns
// without an error when there is nothing newer. After an error other than that
// of listing and planning, the sums are at the position they say, or
// Interrupted.
func (r *Replica) Advance(ctx context.Context, sums *ltx.PageSums, done func(ltx.Pos) bool) error {
	for tries := 0; ; tries++ {
		err := r.advance(ctx, sums, done)
		if err == nil || !errors.Is(err, storage.ErrNotFound) || tries == replans {
			return err
		}
	}
}

func (r *Replica) advance(ctx context.Context, sums *ltx.PageSums, done func(ltx.Pos) bool) error {
	all, err := r.Inventory(ctx)
	if err != nil {
		return err
	}
	plan, err := Plan(all, sums.Pos().TXID, 0)
	if err != nil {
		return err
	}
	for _, f := range plan {
		if err := r.apply(ctx, f, sums); err != nil {
			return fmt.Errorf("read %s: %w", r.Key(f), err)
		}
		if done(sums.Pos()) {
			break
		}
	}
	return nil
}

// apply brings page sums to the position after a file. It reads the file twice,
// so that what is wrong with it is known before.
func (r *Replica) apply(ctx context.Context, f ltx.FileInfo, sums *ltx.PageSums) error {
	fetch := func(b []byte, offset int64) error { return r.fetch(ctx, f, b, offset) }
	h, t, err := ltx.VerifyFile(newRounds(fetch, f.Size, 1))
	if err == nil {
		err = errors.Join(r.checkHeader(f, h), r.checkClaim(f, h))
	}
	if err != nil {
		return err
	}
	d, err := ltx.NewDecoder(newRounds(fetch, f.Size, 1))
	if err != nil {
		return err
	}
	if f.IsSnapshot() {
		if err := sums.Reset(); err != nil {
			return err
		}
	}
	sum := sums.Pos().PostApplyChecksum
	if err := sums.Begin(); err != nil {
		return err
	}
	for p, err := range d.Pages() {
		if err != nil {
			return err
		}
		old, err := sums.Sum(p.Pgno)
		if err = errors.Join(err, sums.Set(p.Pgno, p.Sum)); err != nil {
			return err
		}
		sum ^= old ^ p.Sum
	}
	gone := ltx.Checksum(0)
	if h.Commit < sums.Pages() {
		if gone, err = sums.Tail(h.Commit); err != nil {
			return err
		}
	}
	if sum = (sum ^ gone) | ltx.ChecksumFlag; t.PostApplyChecksum != 0 && sum != t.PostApplyChecksum {
		return fmt.Errorf("%w: its pages make the database sum up to %s, it says %s", ltx.ErrChecksum, sum, t.PostApplyChecksum)
	}
	return sums.Commit(ltx.Pos{TXID: f.Max, PostApplyChecksum: sum}, h.PageSize, h.Commit)
}
