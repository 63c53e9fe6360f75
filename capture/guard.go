package capture

import (
	"context"
	"errors"
)

// doubt is the error that says the WAL cannot tell what changed; its text is
// the reason. A comparison of the whole database mends it.
type doubt string

func (d doubt) Error() string { return string(d) }

const (
	errForeignWrite = doubt("the database file was written to by something that is not SQLite")
	errPageSize     = doubt("page size changed")
)

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
	if err == nil && !c.cur.db.still() {
		err = c.tend(ctx)
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
	case errPageSize:
		return c.anew(ctx, string(errPageSize))
	}
	return c.resync(ctx, string(c.plan.doubt))
}

// untouched looks whether the database file was written to behind SQLite's
// back. Then it is opened again: the wal-index describes what it held before,
// and is made anew if nobody else has the database open.
func (c *Capturer) untouched(ctx context.Context) error {
	overwritten, err := c.cur.overwritten()
	if err == nil && overwritten {
		err = c.anew(ctx, string(errForeignWrite))
	}
	return err
}
