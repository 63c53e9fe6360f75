//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
// of the bytes from first to last. It asks the descriptors: /proc/locks skips
// lines when locks of others come and go while it is read.
func locked(pid int, path string, first, last int64) error {
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return err
	}
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err != nil || target != path {
			continue
		}
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, filepath.Base(fd)))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(raw)) {
			if covers(line, first, last) {
				return nil
			}
		}
	}
	return fmt.Errorf("process %d holds no lock on bytes %d to %d of %s", pid, first, last, path)
}

// covers reads a line such as
// "lock:	1: POSIX  ADVISORY  READ 1234 fe:00:5678 1073741826 1073742335".
func covers(line string, first, last int64) bool {
	f := strings.Fields(line)
	if len(f) != 9 || f[0] != "lock:" || f[2] != "POSIX" {
		return false
	}
	var from int64
	to := int64(1) << 62 // EOF
	if _, err := fmt.Sscan(f[7], &from); err != nil {
		return false
	}
	if _, err := fmt.Sscan(f[8], &to); err != nil && f[8] != "EOF" {
		return false
	}
	return from <= last && first <= to
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
