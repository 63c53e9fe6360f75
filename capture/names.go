package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/tidemark-io/tidemark/internal/filelock"
)

// goneAtLeast is how long the WAL or its index must have been without a name
// before they are made anew: whoever removed them may be about to remove the
// database too, and a new one would take them for its own.
const goneAtLeast = 2 * time.Second

// names is what is known of names that no longer lead to the files that are
// open.
type names struct {
	since  time.Time // when the WAL or its index was found removed
	notice error
}

// open opens the database and brings the spool up to what it holds.
func (c *Capturer) open(ctx context.Context) error {
	if c.cur == nil {
		if apart := c.apart(); apart != nil {
			return apart
		}
		return c.reopen(ctx, cmp.Or(string(c.plan.doubt), atStart))
	}
	db := c.cur.db
	if moved, err := db.moved(); err != nil || moved {
		return errors.Join(err, c.anew(ctx, db.path+" was replaced"))
	}
	name, there, err := db.unnamed()
	switch {
	case err != nil:
		return err
	case name == "":
		c.names = names{}
		return nil
	case there:
		return c.anew(ctx, name+" was replaced")
	}
	if c.names.notice == nil {
		c.names = names{since: time.Now(), notice: fmt.Errorf("%s was removed while the database is in use: what is committed is still captured; "+
			"close all connections of the application and open them again", name)}
		c.opts.Log.Warn("a file of the database was removed", "error", c.names.notice)
	}
	used, err := db.locked(filelock.Write, filelock.SharedFirst, filelock.SharedBytes)
	if err != nil || used {
		return err
	}
	return c.letGo(name)
}

// letGo closes a database whose WAL or index was removed and that nobody else
// uses. Frames that are in the WAL alone are copied back by that, but not
// before it is clear that the one who removed it is not putting another
// database in place.
func (c *Capturer) letGo(name string) error {
	ih, err := c.cur.index()
	if err != nil || ih.Backfilled < ih.MaxFrame && !c.names.longGone() {
		return err
	}
	c.plan.doubt = doubt(name + " was removed")
	err = c.shut()
	c.journal, c.names.notice = journal{}, nil
	if err == nil {
		err = errApart
	}
	return err
}

// longGone tells whether the WAL or its index was removed so long ago that
// nothing else is to be expected of whoever did it.
func (n names) longGone() bool {
	return !n.since.IsZero() && time.Since(n.since) >= goneAtLeast
}

// errApart means that the database is left alone for a moment.
var errApart = errors.New("waiting before the WAL is made anew")

// apart is errApart as long as the WAL must not be made anew by us. Somebody
// else may make it.
func (c *Capturer) apart() error {
	if c.names.since.IsZero() {
		return nil
	}
	if time.Since(c.names.since) < goneAtLeast {
		if f, err := stampOf(c.path + "-wal"); err != nil || f == (stamp{}) {
			return errApart
		}
	}
	c.names = names{}
	return nil
}

// anew opens the database again.
func (c *Capturer) anew(ctx context.Context, reason string) error {
	err := c.shut()
	c.journal, c.names.notice = journal{}, nil
	c.plan.doubt = doubt(reason)
	if err == nil {
		err = c.apart()
	}
	if err != nil {
		return err
	}
	return c.reopen(ctx, reason)
}

// moved tells whether the database file is not, or not any longer, the one
// under its name.
func (db *database) moved() (bool, error) {
	_, same, err := sameNamed(db.file)
	return !same, err
}

// unnamed finds a file beside the database that is open but not under its
// name; there tells whether another one is.
func (db *database) unnamed() (name string, there bool, err error) {
	for _, f := range []*os.File{db.wal, db.shm} {
		if f == nil {
			continue
		}
		there, same, err := sameNamed(f)
		if err != nil || !same {
			return f.Name(), there, err
		}
	}
	return "", false, nil
}

func sameNamed(f *os.File) (there, same bool, err error) {
	named, err := os.Stat(f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	open, err := f.Stat()
	return true, err == nil && os.SameFile(named, open), err
}
