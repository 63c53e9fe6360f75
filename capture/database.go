package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tidemark-io/tidemark/ltx"
)

var (
	// errAbsent means that there is no database yet: no file, or an empty one.
	errAbsent = errors.New("no database yet")
	// ErrRollbackJournal is wrapped when a database is not in WAL mode and may
	// not, or cannot yet, be switched to it.
	ErrRollbackJournal = errors.New("database is in rollback-journal mode")
)

// database is an open SQLite file: two connections and a raw descriptor of the
// database, the WAL and the wal-index. POSIX drops all locks of a process on a
// file when it closes any descriptor of it, so raw descriptors live until
// after the connections.
type database struct {
	path           string
	pageSize       uint32
	file, wal, shm *os.File
	conns          [2]*conn
	locker         *conn // made when the write lock is first needed
	trace          trace
}

// openDatabase opens the database at path for reading. It wraps errAbsent and
// ErrRollbackJournal. converted tells that it switched the database to WAL.
func openDatabase(path, journalMode string) (db *database, converted bool, err error) {
	db = &database{path: path}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.close())
			db = nil
		}
	}()
	if db.file, err = openRaw(path); err != nil {
		return db, false, err
	}
	inWAL, err := db.readHeader()
	if err != nil {
		return db, false, err
	}
	if !inWAL {
		if err := db.convert(journalMode); err != nil {
			return db, false, err
		}
	}
	return db, !inWAL, db.connect()
}

// present finds the file that path leads to, through symbolic links, as SQLite
// does: the WAL lies beside that one. It wraps errAbsent when there is none, or
// nothing in it.
func present(path string) (string, error) {
	file, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("open %s: %w", path, errAbsent)
	}
	if err != nil {
		return "", err
	}
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("open %s: not a regular file; name the database file itself", path)
	case info.Size() == 0:
		return "", fmt.Errorf("open %s: %w", path, errAbsent)
	}
	return file, nil
}

func openRaw(path string) (*os.File, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open %s: %w", path, errAbsent)
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("open %s: give this user (uid %d) read and write permission on it and its directory: %w", path, os.Geteuid(), err)
	}
	return f, err
}

// readHeader reads the page size and the journal mode (SQLite file format,
// section 1.3).
func (db *database) readHeader() (inWAL bool, err error) {
	var b [100]byte
	n, err := db.file.ReadAt(b[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read %s: %w", db.path, err)
	}
	if n == 0 {
		return false, fmt.Errorf("read %s: %w", db.path, errAbsent)
	}
	if n < len(b) || string(b[:16]) != "SQLite format 3\x00" {
		return false, fmt.Errorf("read %s: not a SQLite database, or an encrypted one, which cannot be replicated", db.path)
	}
	db.pageSize = uint32(binary.BigEndian.Uint16(b[16:]))
	if db.pageSize == 1 {
		db.pageSize = 65536
	}
	if !ltx.ValidPageSize(db.pageSize) {
		return false, fmt.Errorf("read %s: page size %d is not valid; the file is damaged", db.path, db.pageSize)
	}
	return b[18] == 2 && b[19] == 2, nil
}

// convert switches the database to WAL mode, which the file remembers.
func (db *database) convert(journalMode string) error {
	if journalMode != JournalWAL {
		return fmt.Errorf("%s: %w: run PRAGMA journal_mode=WAL on it, or set journal-mode: wal", db.path, ErrRollbackJournal)
	}
	c, err := openConn(db.path)
	if err != nil {
		return err
	}
	err = c.toWAL()
	if isLocked(err) {
		err = fmt.Errorf("%s: %w: waiting for a moment without open transactions to switch it to WAL", db.path, ErrRollbackJournal)
	} else if err != nil {
		err = fmt.Errorf("switch %s to WAL: %w", db.path, err)
	}
	db.conns[0] = c
	return err
}

func (db *database) connect() (err error) {
	for i := range db.conns {
		if db.conns[i] == nil {
			if db.conns[i], err = openConn(db.path); err != nil {
				return err
			}
		}
	}
	// A first transaction makes SQLite create or recover the WAL and its index.
	if err := errors.Join(db.conns[0].begin(), db.conns[0].end()); err != nil {
		return fmt.Errorf("read %s: %w", db.path, err)
	}
	if db.wal, err = os.Open(db.path + "-wal"); err != nil {
		return err
	}
	db.shm, err = os.Open(db.path + "-shm")
	return err
}

// replaced tells whether a name no longer leads to the file that is open.
func (db *database) replaced() (string, bool) {
	for _, f := range []*os.File{db.file, db.wal, db.shm} {
		named, err := os.Stat(f.Name())
		open, err2 := f.Stat()
		if err != nil || err2 != nil || !os.SameFile(named, open) {
			return f.Name(), true
		}
	}
	return "", false
}

// pages returns the size of the file in pages.
func (db *database) pages() (uint32, error) {
	info, err := db.file.Stat()
	if err != nil {
		return 0, err
	}
	return uint32((info.Size() + int64(db.pageSize) - 1) / int64(db.pageSize)), nil
}

func (db *database) close() error {
	var err error
	for _, c := range append(db.conns[:], db.locker) {
		if c != nil {
			err = errors.Join(err, c.end(), c.close())
		}
	}
	for _, f := range []*os.File{db.shm, db.wal, db.file} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}
