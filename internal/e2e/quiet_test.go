//go:build e2e

package e2e_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// What SQLite locks to write: a byte of the -shm in WAL mode, which FULL,
// RESTART and TRUNCATE checkpoints hold too, and the bytes of the database file
// below the shared ones.
const (
	writeLock   = 120
	pendingByte = 1 << 30
	reserved    = 1<<30 + 1
)

// TestSidecarWritesNothingAndLocksNobodyOut watches the locks of the sidecar's
// descriptors, and a twin of the database that the same writer writes and that
// SQLite alone copies back: only copying back makes the files equal.
func TestSidecarWritesNothingAndLocksNobodyOut(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, alone := twins(t)
	sidecar := rig.Replicate(t, path, p)
	awaitFile(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group errgroup.Group
	samples := 0
	group.Go(func() (err error) {
		samples, err = watchLocks(ctx, sidecar.Pid(), path)
		return err
	})
	load := modest(500)
	load.Rate, load.Body = 100, 4000
	testdb.StartWriter(t, path, load).Wait(t)
	rig.Eventually(t, rig.Limit, func(context.Context) error { return copiedBack(path) })
	cancel()
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	if samples < 100 {
		t.Errorf("looked %d times only", samples)
	}
	load.Rate = 0
	testdb.StartWriter(t, alone, load).Wait(t)
	testdb.Checkpoint(t, alone)
	testdb.SamePages(t, path, alone, 4096)
	stop(t, sidecar)
	restoresEqual(t, p, path)
}

// twins makes two databases of the same bytes.
func twins(t *testing.T) (a, b string) {
	t.Helper()
	a, db := live(t, testdb.Options{})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(a)
	b = filepath.Join(t.TempDir(), "twin.db")
	if err == nil {
		err = os.WriteFile(b, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a, b
}

// watchLocks looks at the locks of a process until ctx ends.
func watchLocks(ctx context.Context, pid int, path string) (samples int, err error) {
	for ; ctx.Err() == nil; samples++ {
		if locked(pid, path+"-shm", writeLock, writeLock) == nil {
			return samples, fmt.Errorf("sample %d: the sidecar holds the write lock", samples)
		}
		if locked(pid, path, pendingByte, reserved) == nil {
			return samples, fmt.Errorf("sample %d: the sidecar has a lock to write the database file", samples)
		}
	}
	return samples, nil
}

// copiedBack tells whether all frames of the WAL are in the database file: the
// wal-index counts them at byte 16, and those copied back at byte 96.
func copiedBack(path string) (err error) {
	f, err := os.Open(path + "-shm")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var head [100]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return err
	}
	frames, copied := binary.NativeEndian.Uint32(head[16:]), binary.NativeEndian.Uint32(head[96:])
	if frames != copied {
		return fmt.Errorf("%d of %d frames are copied back", copied, frames)
	}
	return nil
}
