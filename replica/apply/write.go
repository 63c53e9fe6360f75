package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/ltx"
)

// Apply brings the copy to the position after a change. Readers see it whole or
// not at all, and delay it as long as they read (see Options). After an error
// the copy is at the position that Pos returns. The error wraps ErrMismatch,
// ErrForeign or ErrUnknown, is the cause of ctx's end, or what reading the
// pages or writing them led to. Other writers are waited for.
func (c *Copy) Apply(ctx context.Context, f Change) error {
	if err := c.take(ctx); err != nil {
		return err
	}
	defer c.give()
	if err := c.apply(ctx, f); err != nil {
		return fmt.Errorf("apply transaction %s to %s: %w", f.Post.TXID, c.path, err)
	}
	return nil
}

func (c *Copy) apply(ctx context.Context, f Change) error {
	if err := c.trueSums(ctx); err != nil {
		return err
	}
	w, err := c.check(ctx, f)
	if err != nil {
		return err
	}
	now := c.side()
	if w.moves(now) {
		w.next.chain, w.next.shown, w.next.pageSize = now.chain, now.shown, now.pageSize
		return c.move(w)
	}
	if w.next.pages > 0 {
		w.next.shown = w.next.chain.show(now.nextCounter())
	}
	return c.commit(ctx, w)
}

// move gives the content that is there another position.
func (c *Copy) move(w *work) error {
	if err := c.note.write(c.side(), w.next); err != nil {
		return err
	}
	c.set(w.next)
	return c.sums.Commit(w.next.pos, w.next.pageSize, w.next.pages)
}

// commit does the work behind a journal.
func (c *Copy) commit(ctx context.Context, w *work) (err error) {
	if err := c.reserve(ctx); err != nil {
		return err
	}
	held := true
	defer func() {
		if held {
			err = errors.Join(err, c.unreserve())
		}
	}()
	if err := c.untouched(); err != nil {
		return err
	}
	j, err := newJournal(c.file, c.side())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	if err := c.prepare(ctx, j, w); err != nil {
		return errors.Join(err, j.remove())
	}
	if err = c.exclude(ctx); err == nil {
		err = c.dropWAL()
	}
	if err != nil {
		return errors.Join(err, j.remove())
	}
	if err = c.write(w); err == nil {
		err = j.remove()
	}
	if err != nil {
		held = false
		return errors.Join(err, c.rollback())
	}
	before := c.side()
	c.set(w.next)
	held = false
	return errors.Join(c.unreserve(), c.follow(w, before))
}

// prepare makes durable what is needed to go back, and to know where we are.
func (c *Copy) prepare(ctx context.Context, j *journal, w *work) error {
	var g errgroup.Group
	g.Go(func() error { return c.note.write(c.side(), w.next) })
	g.Go(func() error {
		if err := c.keep(ctx, j, w); err != nil {
			return err
		}
		return j.arm()
	})
	return g.Wait()
}

// keep puts the pages that change, or go, into the journal.
func (c *Copy) keep(ctx context.Context, j *journal, w *work) error {
	now := c.side()
	page := make([]byte, now.pageSize)
	keep := func(pgno uint32) error {
		if pgno%64 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if pgno > now.pages || pgno == now.lock() {
			return nil
		}
		if err := c.readPage(now, pgno, page); err != nil {
			return err
		}
		return j.add(pgno, page)
	}
	gone := w.next.pages + 1
	if now.pageSize != w.next.pageSize {
		gone = 1
	} else {
		for p, err := range w.each(c.sums, false) {
			if err == nil {
				err = keep(p.Pgno)
			}
			if err != nil {
				return err
			}
		}
	}
	for pgno := gone; pgno <= now.pages; pgno++ {
		if err := keep(pgno); err != nil {
			return err
		}
	}
	return nil
}

// readPage reads a page and makes sure that it is what we know it to be.
func (c *Copy) readPage(now side, pgno uint32, page []byte) error {
	if _, err := c.file.ReadAt(page, int64(pgno-1)*int64(now.pageSize)); errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: page %d is missing", ErrForeign, pgno)
	} else if err != nil {
		return err
	}
	if now.pos.IsZero() {
		return nil
	}
	if pgno == 1 {
		copy(page, now.chain[:])
		defer copy(page, now.shown[:])
	}
	want, err := c.sums.Sum(pgno)
	if err == nil && ltx.ChecksumPage(pgno, page) != want {
		err = fmt.Errorf("%w: page %d is not what was put there", ErrForeign, pgno)
	}
	return err
}

// write changes the file. Nobody else has it open for reading or writing.
func (c *Copy) write(w *work) error {
	now := c.side()
	out := run{f: c.file, size: int(w.next.pageSize)}
	for p, err := range w.each(c.sums, now.pageSize != w.next.pageSize) {
		if err != nil {
			return err
		}
		slot, err := out.slot(p.Pgno)
		if err != nil {
			return err
		}
		if p.Data != nil {
			copy(slot, p.Data)
		} else if _, err := c.file.ReadAt(slot, 0); err != nil {
			return err
		}
		if p.Pgno == 1 {
			copy(slot, w.next.shown[:])
		}
	}
	if err := out.flush(); err != nil {
		return err
	}
	if err := c.file.Truncate(w.next.size()); err != nil {
		return err
	}
	return c.file.Sync()
}

// follow brings the page sums to the position of the file.
func (c *Copy) follow(w *work, before side) error {
	if err := c.sums.Begin(); err != nil {
		return err
	}
	for p, err := range w.each(c.sums, before.pageSize != w.next.pageSize) {
		if err == nil && p.Data != nil {
			err = c.sums.Set(p.Pgno, p.Sum)
		}
		if err != nil {
			return err
		}
	}
	if lock := w.next.lock(); before.pageSize != w.next.pageSize && lock <= w.next.pages {
		if err := c.sums.Set(lock, 0); err != nil {
			return err
		}
	}
	return c.sums.Commit(w.next.pos, w.next.pageSize, w.next.pages)
}

// run gathers neighboring pages and writes them with one call.
type run struct {
	f     *os.File
	size  int // of a page
	first uint32
	buf   []byte
}

const runBytes = 512 << 10

// slot returns where a page is to be put before the next call.
func (r *run) slot(pgno uint32) ([]byte, error) {
	n := len(r.buf)
	if n > 0 && (pgno != r.first+uint32(n/r.size) || n+r.size > runBytes) {
		if err := r.flush(); err != nil {
			return nil, err
		}
		n = 0
	}
	if n == 0 {
		r.first = pgno
	}
	r.buf = append(r.buf, make([]byte, r.size)...)
	return r.buf[n:], nil
}

func (r *run) flush() error {
	if len(r.buf) == 0 {
		return nil
	}
	_, err := r.f.WriteAt(r.buf, int64(r.first-1)*int64(r.size))
	r.buf = r.buf[:0]
	return err
}
