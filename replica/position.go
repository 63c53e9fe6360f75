package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/storage"
)

// PosAt returns the state after a transaction, with the size of the database
// there, from the ends of a file that ends at it. It is an UnreachableError
// where none does, and ErrNoBackup where there is no file at all.
func (r *Replica) PosAt(ctx context.Context, txid ltx.TXID) (Tip, error) {
	var err error
	for range tipTries {
		var all []ltx.FileInfo
		if all, err = newAim(r, RestoreOptions{}).list(ctx); err != nil {
			return Tip{}, err
		}
		var at Tip
		if at, err = r.reached(ctx, all, txid); !errors.Is(err, storage.ErrNotFound) {
			return at, err
		}
	}
	return Tip{}, err
}

// reached asks the files that end at txid until one carries a checksum: a claim
// beside a snapshot does not.
func (r *Replica) reached(ctx context.Context, all []ltx.FileInfo, txid ltx.TXID) (Tip, error) {
	var at Tip
	var errs []error
	for _, f := range all {
		if f.Max != txid {
			continue
		}
		h, t, err := r.ends(ctx, f)
		switch {
		case isDamage(err):
			errs = append(errs, err)
		case err != nil:
			return Tip{}, err
		case at.Pos.TXID == 0 || t.PostApplyChecksum != 0:
			at = Tip{
				Pos:      ltx.Pos{TXID: txid, PostApplyChecksum: t.PostApplyChecksum},
				PageSize: h.PageSize, Commit: h.Commit, Info: f,
			}
		}
		if at.Pos.PostApplyChecksum != 0 {
			break
		}
	}
	switch {
	case at.Pos.TXID != 0:
		return at, nil
	case len(errs) > 0:
		return Tip{}, fmt.Errorf("read position of transaction %s: %w", txid, errors.Join(errs...))
	}
	return Tip{}, unreachable(all, 0, txid)
}

// Touched yields, ascending, the numbers of the pages that differ, or may,
// between the states after two transactions, as the indexes of the files on the
// way tell: more than that where files overlap, and pages beyond the end where
// the database shrank. Memory is a bit a page. The error that ends it is that
// of Plan or of reading.
func (r *Replica) Touched(ctx context.Context, after, through ltx.TXID) iter.Seq2[uint32, error] {
	return func(yield func(uint32, error) bool) {
		var touched *touches
		var err error
		for range tipTries {
			if touched, err = r.touched(ctx, after, through); !errors.Is(err, storage.ErrNotFound) {
				break
			}
		}
		if err != nil {
			yield(0, fmt.Errorf("find pages that changed after transaction %s: %w", after, err))
			return
		}
		for pgno := range touched.pages.all() {
			if pgno != 0 && pgno != touched.lock && !yield(pgno, nil) {
				return
			}
		}
	}
}

// touches gathers page numbers.
type touches struct {
	pages       pageSet
	least, last uint32 // sizes of the database on the way, and at the end
	lock        uint32
}

func (r *Replica) touched(ctx context.Context, after, through ltx.TXID) (*touches, error) {
	all, err := r.Inventory(ctx)
	if err != nil {
		return nil, err
	}
	plan, err := Plan(all, after, through)
	if err != nil {
		return nil, err
	}
	t := &touches{least: ^uint32(0)}
	for batch := range slices.Chunk(plan, defaultJobs) {
		pieces := make([]piece, len(batch))
		g, ctx := errgroup.WithContext(ctx)
		for i, f := range batch {
			g.Go(func() (err error) {
				pieces[i], err = r.piece(ctx, f)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		for _, p := range pieces {
			if err := t.add(p); err != nil {
				return nil, err
			}
		}
	}
	// What was cut off and came back was written again, if only with zeros.
	for pgno := t.least; pgno < t.last; pgno++ {
		t.pages.add(pgno + 1)
	}
	return t, nil
}

func (t *touches) add(p piece) error {
	for e, err := range p.index.Entries() {
		if err != nil {
			return fmt.Errorf("read %s: %w", p.key, err)
		}
		t.pages.grow(e.Pgno)
		t.pages.add(e.Pgno)
	}
	t.least, t.last = min(t.least, p.header.Commit), p.header.Commit
	t.lock = ltx.LockPgno(p.header.PageSize)
	t.pages.grow(t.last)
	return nil
}

// piece is what a file tells of its pages without them.
type piece struct {
	key    string
	header ltx.Header
	index  ltx.Index
}

// piece reads header and index of a file; a small one is fetched whole.
func (r *Replica) piece(ctx context.Context, f ltx.FileInfo) (piece, error) {
	p := piece{key: r.Key(f)}
	if err := r.checkSize(f); err != nil {
		return p, err
	}
	fetch := func(b []byte, offset int64) error { return r.fetch(ctx, f, b, offset) }
	end, err := newTail(fetch, f.Size)
	if err != nil {
		return p, err
	}
	head := make([]byte, ltx.HeaderSize)
	if _, err := end.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return p, err
	}
	if p.header, err = r.header(f, head); err != nil {
		return p, err
	}
	if err := r.checkClaim(f, p.header); err != nil {
		return p, err
	}
	if p.index, err = ltx.ReadIndex(end, f.Size); err != nil {
		return p, fmt.Errorf("read %s: %w", p.key, err)
	}
	return p, nil
}
