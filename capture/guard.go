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
// short, or its first page or one that changed last another one. Somebody may
// have written to it right after a checkpoint, an earlier state most likely.
func (c *Capturer) implausible() (bool, error) {
	db, sums := c.cur.db, c.st.sums
	before, err := c.cur.index()
	if err != nil || before.Backfilled != before.MaxFrame || before.MaxFrame > 0 && !c.cur.at(before.Salt1, before.Salt2, before.MaxFrame) {
		return false, err
	}
	info, err := db.file.Stat()
	if err != nil {
		return false, err
	}
	odd := info.Size() < int64(sums.Pages())*int64(db.pageSize)
	page := make([]byte, db.pageSize)
	for _, pgno := range append(c.last[:], 1) {
		if odd || pgno == 0 || pgno > sums.Pages() {
			continue
		}
		if odd, err = c.otherPage(pgno, page); err != nil {
			return false, err
		}
	}
	after, err := c.cur.index()
	if err != nil || after.IndexState != before.IndexState || after.Backfilled != before.Backfilled || copying(after) {
		return false, err
	}
	return odd, nil
}

// otherPage tells whether a page in the database file is not the one that was
// captured.
func (c *Capturer) otherPage(pgno uint32, page []byte) (bool, error) {
	db := c.cur.db
	n, err := db.file.ReadAt(page, int64(pgno-1)*int64(db.pageSize))
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read %s: %w", db.path, err)
	}
	want, err := c.st.sums.Sum(pgno)
	return n < len(page) || ltx.ChecksumPage(pgno, page) != want, err
}
