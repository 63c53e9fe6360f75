package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"syscall"
	"time"
)

// lockPoll is how often a taken lock is tried again; it is held for one
// rename and one sync.
const lockPoll = 2 * time.Millisecond

// lock takes the lock of one directory, which also holds between processes:
// exclusive (LOCK_EX) for a swap, shared (LOCK_SH) for whatever else may
// replace or remove an object. It belongs to the directory that holds the
// object, so buckets rooted at different depths exclude each other.
func lock(ctx context.Context, root *os.Root, dir string, mode int) (unlock func(), err error) {
	f, err := root.OpenFile(path.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	for {
		err := flock(f, mode|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // which ends the lock
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for lock %s: %w", f.Name(), ctx.Err()), f.Close())
		case <-time.After(lockPoll):
		}
	}
}

func flock(f *os.File, how int) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := conn.Control(func(fd uintptr) { result = syscall.Flock(int(fd), how) }); err != nil {
		return err
	}
	return result
}
