package replica

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrInUse is wrapped when another process has the database open.
var ErrInUse = errors.New("the database is in use")

// Where SQLite puts its locks: in the database file at 1 GiB (file format,
// section 1.5), in the -shm file from byte 120 on. A connection in WAL mode
// holds a shared one in both as long as it is open.
const (
	pendingByte = 0x40000000
	lockBytes   = 512
	shmLocks    = 120
	shmBytes    = 9
)

// checkUnused returns ErrInUse if a process holds one of SQLite's locks on the
// database. A connection in a rollback-journal mode that is between two
// transactions holds none and is not seen.
func checkUnused(path string) error {
	if err := checkUnlocked(path, pendingByte, lockBytes); err != nil {
		return err
	}
	return checkUnlocked(path+"-shm", shmLocks, shmBytes)
}

func checkUnlocked(name string, start, length int64) error {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for locks: %w", err)
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: start, Len: length}
	if err := unix.FcntlFlock(f.Fd(), queryLock, &lock); err != nil {
		return fmt.Errorf("look for locks on %s: %w", name, err)
	}
	if lock.Type != unix.F_UNLCK {
		who := "a process"
		if lock.Pid > 0 { // a lock of an open file belongs to none
			who = fmt.Sprintf("process %d", lock.Pid)
		}
		return fmt.Errorf("%w: %s holds a lock on %s; stop it, or restore to another path", ErrInUse, who, name)
	}
	return nil
}
