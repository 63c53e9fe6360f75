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
	errMoving = errors.New("the database is being written to without a pause long enough to read it: " +
		"put it in WAL mode, which needs none (journal-mode: wal), or let the application pause")
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
	if err := db.restful(); err != nil {
		return glance{}, err
	}
	g, err := db.look()
	if err != nil {
		return glance{}, err
	}
	// What was seen is the state before a write that begins meanwhile.
	return g, db.restful()
}

// look is a glance that may see a transaction half written.
func (db *database) look() (glance, error) {
	var g glance
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
// that one has not touched the file yet; one that was finished between two looks
// at it and at the lock is told from it by looking again.
func (db *database) restful() error {
	if err := db.unwritten(); err != nil {
		return err
	}
	for range hotLooks {
		hot, err := headed(db.path + "-journal")
		if err != nil || !hot {
			return err
		}
		if alive, err := db.locked(filelock.Read, filelock.Reserved, 1); err != nil || alive {
			return err
		}
	}
	return fmt.Errorf("%s: %w", db.path, errHot)
}

// hotLooks is how often a journal must be seen without its writer.
const hotLooks = 5

// unwritten returns errExclusive if anybody has the lock that writing to the
// file needs.
func (db *database) unwritten() error {
	held, err := db.locked(filelock.Read, filelock.SharedFirst, filelock.SharedBytes)
	return errors.Join(err, when(held, errExclusive, db.path))
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
// if anybody wrote to it meanwhile. A commit shows in the change counter. What
// is written before that, or for a transaction that is undone, shows in the
// modification time if that is dated. If not, it shows in the lock that its
// writer has or in the journal that it left: one that has undone it has synced
// the file, which takes longer than the tick that the two writes would have to
// share. A writer has the lock before it writes, too, while it syncs its
// journal: what is dated can be read then.
//
// No lock is taken, not even SQLite's shared one for an instant: a COMMIT that
// finds it fails if it has no busy timeout.
func (db *database) stillImage() (*image, error) {
	before, err := db.pause()
	if err != nil {
		return nil, err
	}
	im := &image{db: db, pages: db.pagesIn(before.stamp.size), pause: before}
	im.check = func() error {
		look := db.glance
		if im.dated {
			look = db.look
		}
		after, err := look()
		if errors.Is(err, errExclusive) || err == nil && after != im.glance {
			return fmt.Errorf("read %s: %w", db.path, errMoving)
		}
		return err
	}
	return im, nil
}

// newestStill is a stillImage that moves on to the newest state when reading
// begins, in a pause of its own, unless the number of its pages has changed.
func (db *database) newestStill() (*image, error) {
	im, err := db.stillImage()
	if err != nil {
		return nil, err
	}
	im.enter = func() (err error) {
		if im.pause, err = db.pause(); err != nil {
			return err
		}
		size, _, err := db.readHeader()
		other := size != db.pageSize || db.pagesIn(im.stamp.size) != im.pages
		return errors.Join(err, when(other && err == nil, errMoving, db.path))
	}
	return im, nil
}

func (db *database) pagesIn(bytes int64) uint32 {
	size := int64(db.pageSize)
	return uint32((bytes + size - 1) / size)
}

// patience is how long a database may keep us from reading it before that is
// called a failure.
const patience = 10 * time.Second
