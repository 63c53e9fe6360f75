package replica

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/tidemark-io/tidemark/internal/filelock"
)

// ErrInUse is wrapped when another process has the database open.
var ErrInUse = errors.New("the database is in use")

// checkUnused returns ErrInUse if a process holds one of SQLite's locks on the
// database. A connection in a rollback-journal mode that is between two
// transactions holds none and is not seen.
func checkUnused(path string) error {
	if err := checkUnlocked(path, filelock.Pending, filelock.DatabaseBytes); err != nil {
		return err
	}
	return checkUnlocked(path+"-shm", filelock.WALWrite, filelock.WALBytes)
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
	other, err := filelock.OfOthers(f, filelock.Write, start, length)
	if err != nil {
		return err
	}
	if other.Held {
		return fmt.Errorf("%w: %s holds a lock on %s; stop it, or restore to another path", ErrInUse, other, name)
	}
	return nil
}
