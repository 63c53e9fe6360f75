package capture

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-io/tidemark/ltx"
)

// doubt is the error that says the WAL cannot tell what changed; its text is
// the reason. A comparison of the whole database mends it.
type doubt string

func (d doubt) Error() string { return string(d) }

const (
	errForeignWrite = doubt("the database file was written to by something that is not SQLite")
	errPageSize     = doubt("page size changed")
)

// Doubt has the whole database compared with what was captured of it, in the
// next step of Run or Capture.
func (c *Capturer) Doubt(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plan.doubt == "" {
		c.plan.doubt = doubt(reason)
	}
	if c.cur != nil {
		c.cur.db.seen = glance{}
	}
	signal(c.wake)
}

// guard captures, and answers a doubt with a comparison. A doubt stays until
// one has succeeded.
func (c *Capturer) guard(ctx context.Context, capture func(context.Context) error) error {
	if c.cur.db.still() {
		if err := c.captureStill(ctx); err != nil || c.cur.db.still() {
			return err
		}
	}
	err := c.untouched(ctx)
	if err == nil {
		err = c.pinned(ctx, capture)
	}
	if errors.As(err, &c.plan.doubt) {
		err = c.pinned(ctx, capture)
	}
	// Nothing is copied back from a WAL without a name.
	if err == nil && !c.cur.db.still() && c.names.notice == nil {
		if err = c.tend(ctx); errors.As(err, &c.plan.doubt) {
			err = c.trust(ctx)
		}
	}
	return err
}

// pinned compares the database if there is a doubt, then captures, unless it
// is found not to be in WAL mode any more.
func (c *Capturer) pinned(ctx context.Context, capture func(context.Context) error) error {
	err := c.trust(ctx)
	if err != nil || c.cur.db.still() {
		return err
	}
	return capture(ctx)
}

// trust compares the database if there is a doubt.
func (c *Capturer) trust(ctx context.Context) error {
	switch c.plan.doubt {
	case "":
		return nil
	case errPageSize, errForeignWrite:
		return c.anew(ctx, string(c.plan.doubt))
	}
	return c.resync(ctx, string(c.plan.doubt))
}

// untouched looks whether the database file was written to behind SQLite's
// back. Then it is opened again: the wal-index describes what it held before,
// and is made anew if nobody else has the database open.
func (c *Capturer) untouched(ctx context.Context) error {
	overwritten, err := c.cur.overwritten()
	if err == nil && !overwritten && c.cur.db.trace.touched {
		overwritten, err = c.implausible()
		c.cur.db.foreign = overwritten
	}
	if err == nil && overwritten {
		err = c.anew(ctx, string(errForeignWrite))
	}
	return err
}

// implausible tells whether the database file cannot be what a checkpoint made
// of it, when all of the WAL is captured and copied back: whether it is too
// short, or its first page another one. Somebody may have written to it right
// after a checkpoint.
func (c *Capturer) implausible() (bool, error) {
	db, sums := c.cur.db, c.st.sums
	before, err := c.cur.index()
	if err != nil || before.Backfilled != before.MaxFrame || before.MaxFrame > 0 && !c.cur.at(before.Salt1, before.Salt2, before.MaxFrame) {
		return false, err
	}
	page := make([]byte, db.pageSize)
	n, err := db.file.ReadAt(page, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read %s: %w", db.path, err)
	}
	info, err := db.file.Stat()
	if err != nil {
		return false, err
	}
	want, err := sums.Sum(1)
	if err != nil {
		return false, err
	}
	after, err := c.cur.index()
	if err != nil || after.IndexState != before.IndexState || after.Backfilled != before.Backfilled || copying(after) {
		return false, err
	}
	short := info.Size() < int64(sums.Pages())*int64(db.pageSize)
	return short || n < len(page) || ltx.ChecksumPage(1, page) != want, nil
}
