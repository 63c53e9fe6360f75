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
)

// ErrLocked is wrapped when another process captures the same database.
var ErrLocked = errors.New("database is replicated by another process")

// lockState makes the state directory and takes it for this process. A crash
// releases the lock; the file names its holder.
func lockState(dir string) (*os.File, error) {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("make state directory: create %s first: %w", filepath.Dir(dir), err)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock state directory: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		holder, _ := io.ReadAll(io.LimitReader(f, 64))
		err = fmt.Errorf("lock %s: %w: process %s; stop it first", f.Name(), ErrLocked, strings.TrimSpace(string(holder)))
		return nil, errors.Join(err, f.Close())
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock state directory: %w", err), f.Close())
	}
	return f, nil
}
