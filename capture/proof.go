package capture

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
)

// proofView is how much is compared under one read transaction: it keeps the
// WAL from starting over, so it must be short.
const proofView = 4 << 20

// Prove compares pages of the database from first on, 1 at least, with their
// checksums as captured, so many bytes of them or up to the end, and returns the
// page to go on with; 0: the end was reached. Between a few MiB it lets go of
// the database and rests. It wraps ErrDiffers at a page that is not as it was
// captured, which it returns, and has that mended in the next step of Run or
// Capture; and ErrNotOpen.
func (c *Capturer) Prove(ctx context.Context, first uint32, bytes int64) (next uint32, err error) {
	next = max(first, 1)
	for ctx.Err() == nil {
		start := time.Now()
		p, err := c.proof(ctx, next, min(bytes, proofView))
		if err != nil {
			return next, fmt.Errorf("prove: %w", err)
		}
		next, err = p.compare(ctx)
		if err = errors.Join(err, p.close()); errors.Is(err, ErrDiffers) {
			c.disbelieve()
		}
		if err != nil {
			return next, fmt.Errorf("prove: %w", err)
		}
		if bytes -= p.size(); next == 0 || bytes <= 0 {
			return next, nil
		}
		rest(ctx, time.Since(start))
		if !c.isOpen() { // it may be closed for good
			return next, fmt.Errorf("prove %s: %w", c.path, ErrNotOpen)
		}
	}
	return next, context.Cause(ctx)
}

func (c *Capturer) isOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cur != nil
}

// proof is some pages of the database as of a captured position, and what their
// checksums are then.
type proof struct {
	*view
	first uint32
	sums  []ltx.Checksum
}

// proof captures what is committed, and holds what that is.
func (c *Capturer) proof(ctx context.Context, first uint32, bytes int64) (*proof, error) {
	if err := c.Capture(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cur == nil {
		return nil, fmt.Errorf("%s: %w", c.path, ErrNotOpen)
	}
	v, err := c.hold()
	if err != nil {
		return nil, err
	}
	v.db.views.Add(1)
	p := &proof{view: v, first: first}
	if err := p.read(c.st.sums, bytes); err != nil {
		return nil, errors.Join(err, v.close())
	}
	return p, nil
}

// read reads the checksums of so many bytes of pages, one at least.
func (p *proof) read(sums *ltx.PageSums, bytes int64) error {
	if sums.Interrupted() || sums.PageSize() != p.db.pageSize || sums.Pages() != p.pages {
		return fmt.Errorf("%s: the page sums belong to another state, which the next capture mends", p.db.path)
	}
	if p.first > p.pages { // it has shrunk
		return nil
	}
	n := min(max(1, bytes/int64(p.db.pageSize)), int64(p.pages-p.first+1))
	p.sums = make([]ltx.Checksum, n)
	for i := range p.sums {
		sum, err := sums.Sum(p.first + uint32(i))
		if err != nil {
			return err
		}
		p.sums[i] = sum
	}
	return nil
}

// size returns the bytes of the pages.
func (p *proof) size() int64 { return int64(len(p.sums)) * int64(p.db.pageSize) }

// compare reads the pages and returns the one behind them; 0: there is none. It
// wraps ErrDiffers and returns the page that does.
func (p *proof) compare(ctx context.Context) (next uint32, err error) {
	size := int64(p.db.pageSize)
	buf := make([]byte, min(imageChunk, p.size()))
	for rest := p.sums; len(rest) > 0; {
		select {
		case <-ctx.Done():
			return p.first, context.Cause(ctx)
		case <-p.db.closing:
			return p.first, fmt.Errorf("read %s: %w", p.db.path, ErrNotOpen)
		default:
		}
		n := min(len(rest), int(imageChunk/size))
		at := p.first + uint32(len(p.sums)-len(rest))
		err := p.chunk(at, uint32(n), buf, func(pgno uint32, page []byte) error {
			if ltx.ChecksumPage(pgno, page) == p.sums[pgno-p.first] {
				return nil
			}
			next = pgno
			return fmt.Errorf("%s: %w: page %d is not what it was at TXID %s", p.db.path, ErrDiffers, pgno, p.pos.TXID)
		})
		if err != nil {
			return max(next, p.first), err
		}
		rest = rest[n:]
	}
	if next = p.first + uint32(len(p.sums)); next > p.pages {
		next = 0
	}
	return next, nil
}

// disbelieve has the database compared as a whole. Where the page sums are what
// is wrong, the local state begins anew instead: they would be added up to a
// checksum that no database has.
func (c *Capturer) disbelieve() {
	c.mu.Lock()
	damaged := errors.Is(c.st.sums.Verify(), ltx.ErrCorrupt)
	if damaged {
		c.st.written = stamp{}
	}
	c.mu.Unlock()
	if damaged {
		signal(c.wake)
		return
	}
	c.Doubt("a proof found that it differs from what was captured")
}
