package capture

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tidemark-io/tidemark/internal/filelock"
)

// ErrLocked is wrapped when another process captures the same database.
var ErrLocked = errors.New("database is replicated by another process")

const (
	lockName = "lock"
	// parkedWord begins the line of a lock file that names the lock file of the
	// process that holds the database parked.
	parkedWord = "parked"
)

// Holder is the lock file of a process for the databases that it has parked:
// while it is held, another process takes none of them. A crash releases it.
// Close it last.
type Holder struct{ f *os.File }

// Hold takes the lock file at path, which is made if need be. It wraps
// ErrLocked and names the process when another one has it.
func Hold(path string) (*Holder, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f, err := takeLock(abs)
	if err != nil {
		return nil, err
	}
	if err := signLock(f, ""); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Holder{f: f}, nil
}

// Close gives the lock up.
func (h *Holder) Close() error { return h.f.Close() }

// lockState makes the state directory and takes it for this process. A crash
// releases the lock; the file names its holder.
func lockState(dir string, ours *Holder) (*os.File, error) {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("make state directory: create %s first: %w", filepath.Dir(dir), err)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make state directory: %w", permission(err, filepath.Dir(dir)))
	}
	f, err := takeLock(filepath.Join(dir, lockName))
	if err != nil {
		return nil, err
	}
	if err = notParked(f, ours); err == nil {
		err = signLock(f, "")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// takeLock opens a lock file and locks it, without waiting.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", permission(err, filepath.Dir(path)))
	}
	err = filelock.Exclusive(f)
	if err == nil {
		return f, nil
	}
	if errors.Is(err, filelock.ErrHeld) {
		err = fmt.Errorf("lock %s: %w: process %s; stop it first", path, ErrLocked, firstWord(f))
	}
	return nil, errors.Join(err, f.Close())
}

// signLock writes who has the lock. parkedBy is the lock file that stands for
// it once it is closed, relative to its directory; empty: none.
func signLock(f *os.File, parkedBy string) error {
	text := fmt.Sprintf("%d\n", os.Getpid())
	if parkedBy != "" {
		text += parkedWord + " " + parkedBy + "\n"
	}
	err := f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(text), 0)
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// park leaves word in a lock file that holder stands for it.
func park(lock *os.File, holder *Holder) error {
	if holder == nil {
		return nil
	}
	rel, err := filepath.Rel(filepath.Dir(lock.Name()), holder.f.Name())
	if err != nil {
		return err
	}
	return signLock(lock, rel)
}

// notParked refuses a lock file that a running process holds parked, unless it
// is this one.
func notParked(lock *os.File, ours *Holder) error {
	text, err := io.ReadAll(io.NewSectionReader(lock, 0, 8<<10))
	if err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	_, line, _ := strings.Cut(string(text), "\n")
	rel, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), parkedWord+" ")
	if !ok {
		return nil
	}
	path := filepath.Join(filepath.Dir(lock.Name()), rel)
	holder, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	defer holder.Close()
	if ours != nil && sameOpen(ours.f, holder) {
		return nil
	}
	err = filelock.Shared(holder)
	if errors.Is(err, filelock.ErrHeld) {
		return fmt.Errorf("lock %s: %w: process %s, by %s; stop it first", lock.Name(), ErrLocked, firstWord(holder), path)
	}
	return err
}

// sameOpen tells whether two descriptors are of one file.
func sameOpen(a, b *os.File) bool {
	x, err := a.Stat()
	y, err2 := b.Stat()
	return err == nil && err2 == nil && os.SameFile(x, y)
}

// firstWord returns the process that a lock file names.
func firstWord(f *os.File) string {
	text, _ := io.ReadAll(io.NewSectionReader(f, 0, 64))
	word, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(word)
}

// permission adds to an error of the file system what would help.
func permission(err error, dir string) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; give this user (uid %d) read and write permission on %s and the database in it", err, os.Geteuid(), dir)
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w; the state is kept beside the database, so %s must be writable", err, dir)
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return fmt.Errorf("%w; raise the limit of open files (ulimit -n, LimitNOFILE= of a systemd unit)", err)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("%w; make room on the file system of %s", err, dir)
	}
	return err
}
