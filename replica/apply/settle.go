package apply

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/mattn/go-sqlite3"

	"github.com/tidemark-io/tidemark/internal/filelock"
)

// settle lets SQLite finish what others left beside the database at path: it
// rolls back a hot journal, and copies a WAL into the file and removes it. The
// raw descriptors of this process hold no locks that SQLite's own closing
// could take away. It wraps ErrInUse when somebody has the database open.
func settle(path string) error {
	wal, err := framesBeside(path)
	if err != nil {
		return err
	}
	journal, err := hotJournal(path)
	if err != nil || !wal && !journal {
		return err
	}
	if err := visit(path); err != nil {
		return fmt.Errorf("settle %s: %w", path, err)
	}
	if wal, err = framesBeside(path); err != nil {
		return err
	}
	if wal {
		return inUse(path)
	}
	return nil
}

// visit opens and closes the database by a connection of SQLite, which plays
// back a journal or makes a WAL part of the file.
func visit(path string) (err error) {
	dsn := (&url.URL{Scheme: "file", Path: path}).String()
	dsn = strings.Replace(dsn, "file://", "file:", 1) + "?mode=rw&_busy_timeout=1000"
	opened, err := (&sqlite3.SQLiteDriver{}).Open(dsn)
	if err != nil {
		return err
	}
	c := opened.(*sqlite3.SQLiteConn)
	defer func() { err = errors.Join(err, c.Close()) }()
	// A checkpoint before anything was read would not know of the WAL.
	for _, query := range []string{"PRAGMA schema_version", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		rows, err := c.QueryContext(context.Background(), query, nil)
		if err == nil {
			err = errors.Join(ignore(rows.Next(make([]driver.Value, len(rows.Columns()))), io.EOF), rows.Close())
		}
		var e sqlite3.Error
		if errors.As(err, &e) && (e.Code == sqlite3.ErrBusy || e.Code == sqlite3.ErrLocked) {
			return errors.Join(inUse(path), err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// walHeader is the size of a WAL without frames (SQLite file format, section
// 4.1).
const walHeader = 32

// framesBeside tells whether there is a WAL with frames beside the database.
func framesBeside(path string) (bool, error) {
	info, err := os.Lstat(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.Size() > walHeader, err
}

// hotJournal tells whether there is a rollback journal that SQLite would play
// back. It does not look for locks.
func hotJournal(path string) (bool, error) {
	f, err := os.Open(path + "-journal")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	var b [1]byte
	n, err := f.ReadAt(b[:], 0)
	return n == 1 && b[0] != 0, ignore(err, io.EOF)
}

// inUse is the error that somebody has the database open, with who it is as
// far as that is known.
func inUse(path string) error {
	return fmt.Errorf("%w: %s has %s open; let it close the database, then it can be taken as a copy", ErrInUse, opener(path), path)
}

// opener names a process that has a lock on the index of the WAL: everybody
// who has the database open in WAL mode does.
func opener(path string) string {
	f, err := os.Open(path + "-shm")
	if err != nil {
		return "another process"
	}
	defer f.Close()
	other, _ := filelock.OfOthers(f, filelock.Write, filelock.WALWrite, filelock.WALBytes)
	return other.String()
}
