package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/tidemark-io/tidemark/internal/filelock"
)

var (
	// errMoving means that the database was written to while it was read.
	errMoving = errors.New("the database is being written to without a pause long enough to read it")
	// errExclusive means that another process keeps everybody out.
	errExclusive = errors.New("another process holds the database for itself alone: remove PRAGMA locking_mode=EXCLUSIVE from the application, or let it end its long transaction")
	// errHot means that a writer died in the middle of a transaction.
	errHot = errors.New("the application was cut off in the middle of a transaction, which it must undo: open the database with it, or with the sqlite3 shell")
)

// glance is what tells committed states of a database in rollback-journal mode
// apart without taking a lock: each commit moves the change counter, and
// whatever writes to the file, also for a transaction that is undone later,
// moves its modification time.
type glance struct {
	stamp   stamp
	counter uint32 // file change counter; SQLite file format, section 1.3.8
}

// still tells that no connection holds the database: it is read as it lies,
// without locks.
func (db *database) still() bool { return db.conns[0] == nil }

// glance looks at a database that has no WAL. It wraps errExclusive while
// somebody writes to the file and errHot after a crash.
func (db *database) glance() (glance, error) {
	var g glance
	if err := db.restful(); err != nil {
		return g, err
	}
	var b [4]byte
	_, err := db.file.ReadAt(b[:], 24)
	if errors.Is(err, io.EOF) {
		return g, fmt.Errorf("read %s: %w", db.path, errAbsent)
	}
	if err != nil {
		return g, fmt.Errorf("read %s: %w", db.path, err)
	}
	g.counter = binary.BigEndian.Uint32(b[:])
	g.stamp, err = changeOf(db.path)
	return g, err
}

// restful tells whether the file holds a committed state: nobody has the lock
// that writing to it needs, and there is no journal that would have to be
// played back first. A journal whose writer is alive and holds the lock before
// that one has not touched the file yet.
func (db *database) restful() error {
	if held, err := db.locked(filelock.Read, filelock.SharedFirst, filelock.SharedBytes); err != nil || held {
		return errors.Join(err, when(held, errExclusive, db.path))
	}
	hot, err := headed(db.path + "-journal")
	if err != nil || !hot {
		return err
	}
	alive, err := db.locked(filelock.Read, filelock.Reserved, 1)
	return errors.Join(err, when(!alive, errHot, db.path))
}

func when(is bool, err error, path string) error {
	if !is {
		return nil
	}
	return fmt.Errorf("%s: %w", path, err)
}

// locked tells whether another process holds a lock on some of the bytes that
// one of this kind would run into.
func (db *database) locked(kind filelock.Kind, first, n int64) (bool, error) {
	other, err := filelock.OfOtherProcesses(db.file, kind, first, n)
	return other.Held, err
}

// headed tells whether there is a file at path that does not begin with a zero,
// as a finished journal does.
func headed(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var b [1]byte
	_, err = f.ReadAt(b[:], 0)
	err = errors.Join(err, f.Close())
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return b[0] != 0, err
}

// stillImage is the whole database as it lies. Reading it ends with errMoving
// if anybody wrote to it meanwhile. A write in the same tick of the kernel's
// clock as the one before would not show in the modification time; a commit
// shows in the counter all the same, and a transaction that writes to the file,
// is undone and syncs it takes longer than a tick.
func (db *database) stillImage() (*image, error) {
	before, err := db.pause()
	if err != nil {
		return nil, err
	}
	size := int64(db.pageSize)
	im := &image{db: db, pages: uint32((before.stamp.size + size - 1) / size), glance: before}
	im.check = func() error {
		after, err := db.glance()
		if errors.Is(err, errExclusive) || err == nil && after != before {
			return fmt.Errorf("read %s: %w", db.path, errMoving)
		}
		return err
	}
	if db.insists {
		db.lockFor(im)
	}
	return im, nil
}

// pause returns a glance at the beginning of a pause that its writer makes: one
// that is not over when the reading begins is the longest there is.
func (db *database) pause() (g glance, err error) {
	for until := time.Now().Add(longestRest); ; time.Sleep(pauseTick) {
		g, err = db.glance()
		if !errors.Is(err, errExclusive) || time.Now().After(until) {
			return g, err
		}
	}
}

// pauseTick is how often a writer is looked at until it pauses.
const pauseTick = 100 * time.Microsecond

// lockFor makes the reading of an image hold SQLite's shared lock, for an
// instant only: a COMMIT waits for it if it has a busy timeout.
func (db *database) lockFor(im *image) {
	var until time.Time
	same := im.check
	im.enter = func() (func() error, error) {
		c, err := openConn(db.path)
		if err != nil {
			return nil, err
		}
		if err := c.begin(); err != nil {
			return nil, errors.Join(err, c.close())
		}
		until = time.Now().Add(sharedAtMost)
		return func() error { return errors.Join(c.end(), c.close()) }, nil
	}
	im.check = func() error {
		if time.Now().After(until) {
			return fmt.Errorf("read %s: it takes longer than %s: %w", db.path, sharedAtMost, errMoving)
		}
		return same()
	}
}

const (
	// insistAfter is how long writers may leave no pause to read the database
	// in before they are locked out for one.
	insistAfter = 5 * time.Second
	// sharedAtMost bounds that.
	sharedAtMost = 250 * time.Millisecond
)

// patience is how long a database may keep us from reading it before that is
// called a failure.
const patience = 10 * time.Second
