package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/tidemark-io/tidemark/internal/filelock"
	"github.com/tidemark-io/tidemark/ltx"
)

// errAbsent means that there is no database yet: no file, or an empty one.
var errAbsent = errors.New("no database yet")

// database is an open SQLite file: a raw descriptor, and in WAL mode two
// connections and raw descriptors of the WAL and the wal-index. POSIX drops all locks of a process on a
// file when it closes any descriptor of it, so raw descriptors live until
// after the connections.
type database struct {
	path           string
	pageSize       uint32
	file, wal, shm *os.File
	conns          [2]*conn
	locker         *conn // made when the write lock is first needed
	trace          trace
	foreign        bool   // something that is not SQLite wrote to the file
	seen           glance // while it is read as it lies: what is captured
	ticks          bool   // see keepsTicks

	closing chan struct{} // closed when close begins: views must end
	views   sync.WaitGroup
}

// openDatabase opens the database at path for reading, without connecting to
// it. It wraps errAbsent.
func openDatabase(path string) (*database, error) {
	db := &database{path: path, closing: make(chan struct{})}
	var err error
	if db.file, err = openRaw(path); err != nil {
		return nil, err
	}
	db.ticks = keepsTicks(db.file)
	if db.pageSize, _, err = db.readHeader(); err != nil {
		return nil, errors.Join(err, db.close())
	}
	return db, nil
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
	return f, permission(err, filepath.Dir(path))
}

// readHeader reads the page size and the journal mode (SQLite file format,
// section 1.3).
func (db *database) readHeader() (pageSize uint32, inWAL bool, err error) {
	var b [100]byte
	n, err := db.file.ReadAt(b[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, false, fmt.Errorf("read %s: %w", db.path, err)
	}
	if n == 0 {
		return 0, false, fmt.Errorf("read %s: %w", db.path, errAbsent)
	}
	if n < len(b) || string(b[:16]) != "SQLite format 3\x00" {
		return 0, false, fmt.Errorf("read %s: not a SQLite database, or an encrypted one, which cannot be replicated", db.path)
	}
	pageSize = uint32(binary.BigEndian.Uint16(b[16:]))
	if pageSize == 1 {
		pageSize = 65536
	}
	if !ltx.ValidPageSize(pageSize) {
		return 0, false, fmt.Errorf("read %s: page size %d is not valid; the file is damaged", db.path, pageSize)
	}
	return pageSize, b[18] == 2 && b[19] == 2, nil
}

// writable is an error if the file may not be written to: SQLite would open it
// all the same, and no checkpoint could be made.
func writable(path string) error {
	err := unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK|unix.W_OK, unix.AT_EACCESS)
	if err == nil {
		return nil
	}
	return permission(&os.PathError{Op: "open", Path: path, Err: err}, filepath.Dir(path))
}

// connect pins nothing yet. After an error the database is as before.
func (db *database) connect() (err error) {
	var conns [2]*conn
	defer func() {
		if err == nil {
			db.conns = conns
			return
		}
		err = permission(err, filepath.Dir(db.path))
		for _, c := range conns {
			if c != nil {
				err = errors.Join(err, c.close())
			}
		}
		err = errors.Join(err, db.closeRaw())
	}()
	for i := range conns {
		if conns[i], err = openConn(db.path); err != nil {
			return err
		}
	}
	// A first transaction makes SQLite create or recover the WAL and its index.
	if err = errors.Join(conns[0].begin(), conns[0].end()); err != nil {
		return fmt.Errorf("read %s: %w", db.path, err)
	}
	if db.wal, err = os.Open(db.path + "-wal"); err != nil {
		return err
	}
	db.shm, err = os.Open(db.path + "-shm")
	return err
}

// pages returns the size of the file in pages.
func (db *database) pages() (uint32, error) {
	info, err := db.file.Stat()
	if err != nil {
		return 0, err
	}
	return db.pagesIn(info.Size()), nil
}

// abandon closes the database without the checkpoint that the last connection
// to a database makes: the lock, which does not belong to the process but to
// the descriptor, keeps SQLite from taking itself for the last. The WAL stays.
func (db *database) abandon() error {
	// If somebody else's lock refuses it, that one does the same.
	_ = filelock.Set(db.file, filelock.Read, filelock.SharedFirst, filelock.SharedBytes)
	return db.close()
}

// close waits for the views to end.
func (db *database) close() error {
	close(db.closing)
	db.views.Wait()
	var err error
	for _, c := range append(db.conns[:], db.locker) {
		if c != nil {
			err = errors.Join(err, c.end(), c.close())
		}
	}
	return errors.Join(err, db.closeRaw(), db.file.Close())
}

// closeRaw closes what connect opened beside the connections, which must be
// closed.
func (db *database) closeRaw() error {
	var err error
	for _, f := range []*os.File{db.shm, db.wal} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	db.shm, db.wal = nil, nil
	return err
}
