package quarantine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/tidemark-io/tidemark/internal/filelock"
)

// lockPatience is how long a lock is waited for.
const lockPatience = 3 * time.Second

// freeze keeps everybody from writing to a database file until thaw is called:
// transactions without a WAL and the undoing of one wait for readers, and
// nothing is copied back from a WAL while somebody reads the file alone.
// Commits to a WAL go on. The locks are those of the descriptors.
func freeze(ctx context.Context, path string) (thaw func() error, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	thaw = file.Close
	if err := lockShared(ctx, file, filelock.SharedFirst); err != nil {
		return nil, errors.Join(err, thaw())
	}
	index, err := os.OpenFile(path+"-shm", os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return thaw, nil
	}
	if err != nil {
		return nil, errors.Join(err, thaw())
	}
	thaw = func() error { return errors.Join(index.Close(), file.Close()) }
	if err := lockShared(ctx, index, filelock.WALReadMark0); err != nil {
		return nil, errors.Join(err, thaw())
	}
	return thaw, nil
}

// lockShared takes a lock that many may have together. Who excludes others from
// it does so for a moment, unless a transaction is left open.
func lockShared(ctx context.Context, f *os.File, start int64) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(lockPatience); ; {
		err := filelock.Set(f, filelock.Read, start, 1)
		if err == nil || !errors.Is(err, filelock.ErrHeld) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: a transaction is open; stop the application", err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// pageSizeOf reads the page size of a database; 0: it has none.
func pageSizeOf(f io.ReaderAt) uint32 {
	var b [18]byte
	if _, err := f.ReadAt(b[:], 0); err != nil || string(b[:16]) != "SQLite format 3\x00" {
		return 0
	}
	if size := uint32(binary.BigEndian.Uint16(b[16:])); size != 1 {
		return size
	}
	return 65536
}
