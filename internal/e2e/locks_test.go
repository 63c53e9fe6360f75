//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// sharedByte is one of those that a connection in WAL mode keeps locked, and
// readMark0 the first of the five bytes of the -shm file that readers lock.
const (
	sharedByte = 1<<30 + 2
	readMark0  = 123
)

// locked tells whether a process holds a POSIX lock on a file that covers one
// of the bytes from first to last.
func locked(pid int, path string, first, last int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	inode := info.Sys().(*syscall.Stat_t).Ino
	raw, err := os.ReadFile("/proc/locks")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(raw)) {
		// 1: POSIX  ADVISORY  READ 1234 fe:00:5678 1073741826 1073742335
		f := strings.Fields(line)
		if len(f) != 8 || f[1] != "POSIX" || f[4] != fmt.Sprint(pid) || !strings.HasSuffix(f[5], fmt.Sprintf(":%d", inode)) {
			continue
		}
		var from, to int64
		if _, err := fmt.Sscan(f[6], &from); err != nil {
			return err
		}
		if _, err := fmt.Sscan(f[7], &to); err != nil {
			to = 1 << 62 // EOF
		}
		if from <= last && first <= to {
			return nil
		}
	}
	return fmt.Errorf("process %d holds no lock on bytes %d to %d of %s", pid, first, last, path)
}

func TestSidecarNeverDropsItsLocks(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, _ := live(t, testdb.Options{})
	sidecar := rig.Replicate(t, path, p)
	awaitFile(t, p)
	held := func() error {
		return errors.Join(locked(sidecar.Pid(), path, sharedByte, sharedByte), locked(sidecar.Pid(), path+"-shm", readMark0, readMark0+4))
	}
	rig.Eventually(t, rig.Limit, func(context.Context) error { return held() })

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group errgroup.Group
	samples := 0
	group.Go(func() error {
		for ; ctx.Err() == nil; samples++ {
			if err := held(); err != nil {
				return fmt.Errorf("sample %d: %w", samples, err)
			}
		}
		return nil
	})
	// Everything that makes a sidecar capture, checkpoint, compare and reopen.
	load := modest(400)
	load.Rate = 400
	testdb.StartWriter(t, path, load).Wait(t)
	for range 10 {
		testdb.StartWriter(t, path, modest(3)).Wait(t)
	}
	db := testdb.Open(t, path)
	testdb.Exec(t, db, "PRAGMA wal_checkpoint(PASSIVE)", "VACUUM")
	commit(t, db, 20)
	before := p.Newest(t)
	commit(t, db, 1)
	awaitTXID(t, p, before+1)
	cancel()
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	t.Logf("looked %d times", samples)
	stop(t, sidecar)
	restoresEqual(t, p, path)
}
