package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"time"

	"github.com/tidemark-io/tidemark/internal/filelock"
)

// lockPoll is how often a taken lock is tried again; it is held for one
// rename and one sync.
const lockPoll = 2 * time.Millisecond

// lock takes the lock of one directory, which also holds between processes:
// filelock.Exclusive for a swap, filelock.Shared for whatever else may
// replace or remove an object. It belongs to the directory that holds the
// object, so buckets rooted at different depths exclude each other.
func lock(ctx context.Context, root *os.Root, dir string, mode func(*os.File) error) (unlock func(), err error) {
	f, err := root.OpenFile(path.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	for {
		err := mode(f)
		if err == nil {
			return func() { _ = f.Close() }, nil // which ends the lock
		}
		if !errors.Is(err, filelock.ErrHeld) {
			return nil, errors.Join(err, f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for lock %s: %w", f.Name(), ctx.Err()), f.Close())
		case <-time.After(lockPoll):
		}
	}
}
