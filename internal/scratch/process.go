package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tidemark-io/tidemark/internal/filelock"
)

const (
	dirPrefix = "tidemark-scratch-"
	lockName  = "lock"
)

// processDir is the directory of one process below the root. The lock in it
// is held as long as the process lives, and no longer.
type processDir struct {
	path string
	lock *os.File
}

// newProcessDir makes the directory, after removing those of processes that
// are gone.
func newProcessDir(root string) (*processDir, error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	if err := removeLeftovers(root); err != nil {
		return nil, fmt.Errorf("remove what an earlier process left: %w", err)
	}
	for {
		path, err := os.MkdirTemp(root, dirPrefix) // mode 0700
		if err != nil {
			return nil, err
		}
		lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process took it for a leftover
		}
		if err != nil {
			return nil, errors.Join(err, os.Remove(path))
		}
		kept, err := filelock.ExclusiveNamed(lock) // another process may have found it unlocked
		if kept {
			return &processDir{path: path, lock: lock}, nil
		}
		if err := errors.Join(err, lock.Close()); err != nil {
			return nil, errors.Join(err, os.RemoveAll(path))
		}
	}
}

// remove removes the directory and all in it, and gives up the lock last.
func (d *processDir) remove() error {
	return errors.Join(os.RemoveAll(d.path), d.lock.Close())
}

// removeLeftovers removes the directories whose lock nobody holds. Those of
// other users are theirs.
func removeLeftovers(root string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), dirPrefix) {
			continue
		}
		err := removeLeftover(filepath.Join(root, e.Name()))
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

func removeLeftover(path string) error {
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		// One that is just being made is empty too: its maker then makes
		// another.
		return ignoreUsed(os.Remove(path))
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	err = filelock.Exclusive(lock)
	if errors.Is(err, filelock.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(path)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ignoreUsed passes over a directory that is gone or has got files meanwhile.
func ignoreUsed(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
