package apply

import (
	"context"
	"fmt"
	"iter"

	"github.com/tidemark-io/tidemark/ltx"
)

// Change is what a file that was verified does to a database.
type Change struct {
	// Pages yields the pages, ascending, never the lock page. It is called
	// several times and yields the same each time; nil: there are none. Pages
	// that the copy holds already are not written.
	Pages            func() iter.Seq2[ltx.Page, error]
	PageSize, Commit uint32 // of the database afterwards; Commit in pages
	// Pre is the position before; zero: the change may follow any, as one that
	// holds every page does.
	Pre ltx.Pos
	// Post is the position after; without a checksum the one computed is taken.
	Post ltx.Pos
}

// work is a change that was found to fit.
type work struct {
	pages     func() iter.Seq2[ltx.Page, error]
	next      side
	differing int // pages to write, page 1 aside
}

// nothing is the pages of a change that has none.
func nothing() iter.Seq2[ltx.Page, error] { return func(func(ltx.Page, error) bool) {} }

// check goes through a change: what comes out is known before anything is
// written.
func (c *Copy) check(ctx context.Context, f Change) (*work, error) {
	now := c.side()
	w := &work{pages: f.Pages, next: side{pos: f.Post, pageSize: f.PageSize, pages: f.Commit, chain: now.chain}}
	if w.pages == nil {
		w.pages = nothing
	}
	switch {
	case now.pos.IsZero():
		return nil, fmt.Errorf("%w: adopt it first", ErrUnknown)
	case !f.Pre.IsZero() && f.Pre.PostApplyChecksum != 0 && f.Pre.PostApplyChecksum != now.pos.PostApplyChecksum:
		return nil, fmt.Errorf("%w: it applies to %s, the copy is at %s", ErrMismatch, f.Pre, now.pos)
	case !ltx.ValidPageSize(f.PageSize):
		return nil, fmt.Errorf("%w: page size %d is not valid", ErrMismatch, f.PageSize)
	}
	sum, err := w.sum(ctx, c, now)
	if err != nil {
		return nil, err
	}
	if want := f.Post.PostApplyChecksum; want != 0 && want != sum {
		return nil, fmt.Errorf("%w: the pages make the database sum up to %s, transaction %s says %s", ErrMismatch, sum, f.Post.TXID, want)
	}
	w.next.pos.PostApplyChecksum = sum
	if w.next.pages == 0 {
		w.next.chain = header{}
	} else if size := w.next.chain.pageSize(); size != f.PageSize {
		return nil, fmt.Errorf("%w: page 1 is not that of a database with pages of %d bytes", ErrMismatch, f.PageSize)
	}
	return w, nil
}

// sum returns the checksum of the database after the change.
func (w *work) sum(ctx context.Context, c *Copy, now side) (ltx.Checksum, error) {
	sum, kept := now.pos.PostApplyChecksum&^ltx.ChecksumFlag, now.pages
	if now.pageSize != w.next.pageSize {
		sum, kept = 0, 0
	}
	if w.next.pages < kept {
		gone, err := c.sums.Tail(w.next.pages)
		if err != nil {
			return 0, err
		}
		sum ^= gone
		kept = w.next.pages
	}
	n, last, grown := 0, uint32(0), uint32(0)
	for p, err := range w.pages() {
		if err != nil {
			return 0, fmt.Errorf("read change: %w", err)
		}
		if n++; n%64 == 0 && ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if p.Pgno <= last || p.Pgno > w.next.pages || p.Pgno == w.next.lock() || len(p.Data) != int(w.next.pageSize) {
			return 0, fmt.Errorf("%w: page %d of %d bytes after page %d, of %d pages", ErrMismatch, p.Pgno, len(p.Data), last, w.next.pages)
		}
		last = p.Pgno
		if p.Pgno == 1 {
			copy(w.next.chain[:], p.Data)
		}
		old := ltx.Checksum(0)
		if p.Pgno > kept {
			grown++
		} else if old, err = c.sums.Sum(p.Pgno); err != nil {
			return 0, err
		}
		if old != p.Sum {
			w.differing++
		}
		sum ^= old ^ p.Sum
	}
	if want := w.grow(kept); grown != want {
		return 0, fmt.Errorf("%w: it holds %d of the %d pages after page %d", ErrMismatch, grown, want, kept)
	}
	return sum | ltx.ChecksumFlag, nil
}

// grow returns how many pages after page kept the database has.
func (w *work) grow(kept uint32) uint32 {
	n := w.next.pages - kept
	if lock := w.next.lock(); lock > kept && lock <= w.next.pages {
		n--
	}
	return n
}

// moves tells whether nothing of the file changes but what it is called.
func (w *work) moves(now side) bool {
	return w.differing == 0 && w.next.pages == now.pages && (w.next.pages == 0 || w.next.pageSize == now.pageSize)
}

// each yields the pages to be written. Page 1 always is one; its data are nil
// where only its header changes.
func (w *work) each(sums *ltx.PageSums, resized bool) iter.Seq2[ltx.Page, error] {
	return func(yield func(ltx.Page, error) bool) {
		first := w.next.pages > 0
		for p, err := range w.pages() {
			var old ltx.Checksum
			if err == nil && !resized {
				old, err = sums.Sum(p.Pgno)
			}
			if err != nil {
				yield(p, fmt.Errorf("read change: %w", err))
				return
			}
			if first && p.Pgno != 1 && !yield(ltx.Page{Pgno: 1}, nil) {
				return
			}
			if p.Pgno != 1 && p.Sum == old {
				first = false
				continue
			}
			first = false
			if !yield(p, nil) {
				return
			}
		}
		if first {
			yield(ltx.Page{Pgno: 1}, nil)
		}
	}
}
