//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// reporting is a victim whose sidecar tells its status.
type reporting struct {
	victim
	socket string
	conf   string
}

func newReporting(t *testing.T, dir string) *reporting {
	t.Helper()
	r := &reporting{socket: filepath.Join(t.TempDir(), "socket")}
	r.path, r.place, r.rnd = filepath.Join(dir, "live.db"), rig.Directory(t), dice(t)
	r.lay(t, testdb.Options{})
	r.conf = config(t, "socket:\n  enabled: true\n  path: %s\ndbs:\n  - path: %s\n    replica:\n      url: %q\n", r.socket, r.path, r.place.URL)
	return r
}

func (r *reporting) start(t *testing.T) {
	t.Helper()
	r.sidecar = rig.Tidemark(t, nil, "replicate", "-config", r.conf)
	awaitFile(t, r.place)
}

// awaitError waits until the status tells an error with one of the texts.
func (r *reporting) awaitError(t *testing.T, texts ...string) {
	t.Helper()
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		e := rig.Tidemark(t, nil, "status", "-json", "-socket", r.socket).Wait(t, rig.Limit)
		for _, text := range texts {
			if strings.Contains(e.Output, `"state": "failing"`) && strings.Contains(e.Output, text) {
				return nil
			}
		}
		return fmt.Errorf("status %s, want it failing with one of %q", e.Output, texts)
	})
}

// awaitLogged waits until an error with one of the texts is logged: a process
// without a descriptor to spare answers nobody.
func (r *reporting) awaitLogged(t *testing.T, texts ...string) {
	t.Helper()
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		for line := range strings.Lines(r.sidecar.Output()) {
			for _, text := range texts {
				if strings.Contains(line, "level=ERROR") && strings.Contains(line, text) {
					return nil
				}
			}
		}
		return fmt.Errorf("none of %q was logged: %s", texts, r.sidecar.Output())
	})
}

// mends expects that all goes on by itself, that each outage was logged by
// one error, and its end.
func (r *reporting) mends(t *testing.T, outages int) {
	t.Helper()
	r.commit(t, 5)
	r.settled(t)
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		e := rig.Tidemark(t, nil, "status", "-json", "-socket", r.socket).Wait(t, rig.Limit)
		if !strings.Contains(e.Output, `"state": "replicating"`) {
			return fmt.Errorf("status %s, want it replicating", e.Output)
		}
		return nil
	})
	r.leave(t)
	stop(t, r.sidecar)
	r.settled(t)
	if n := strings.Count(r.sidecar.Output(), "level=ERROR"); n != outages {
		t.Errorf("%d errors were logged, want %d:\n%s", n, outages, r.sidecar.Output())
	}
}

// temporaries returns what a failed step left in the state directory.
func (r *reporting) temporaries(t *testing.T) []string {
	t.Helper()
	return append(stateFiles(t, &r.victim, "*.tmp"), stateFiles(t, &r.victim, "spool/*.tmp")...)
}

// overwriteRows commits changes that need no more room in a log that has been
// as long before.
func (r *reporting) overwriteRows(t *testing.T, rows int) {
	t.Helper()
	testdb.Exec(t, r.app(t), fmt.Sprintf("UPDATE tall SET b = randomblob(20000) WHERE rowid <= %d", rows))
}

// roomyLog makes a log with room for what is committed next.
func (r *reporting) roomyLog(t *testing.T) {
	t.Helper()
	r.sql(t, "PRAGMA wal_autocheckpoint=0")
	r.overwriteRows(t, 200)
	r.settled(t)
	r.sql(t, "PRAGMA wal_checkpoint(RESTART)")
	r.commit(t, 1)
	r.settled(t)
}

// smallDisk mounts a file system of its own where that is allowed.
func smallDisk(t *testing.T) (dir string, ok bool) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=32m"); err != nil {
		t.Logf("no disk that could be full: %v", err)
		return "", false
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir, true
}

// fill leaves no room on the disk.
func fill(t *testing.T, dir string) (full string) {
	t.Helper()
	full = filepath.Join(dir, "full")
	f, err := os.Create(full)
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 20; size > 0; size /= 2 {
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("fill the disk: %v", err)
		}
		err = nil
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return full
}

func TestFullDiskWhileSpooling(t *testing.T) {
	t.Parallel()
	dir, ok := smallDisk(t)
	if !ok { // TestFileThatMayNotGrowWhileSpooling shows the same everywhere
		dir = t.TempDir()
	}
	r := newReporting(t, dir)
	r.start(t)
	r.roomyLog(t)
	if ok {
		full := fill(t, dir)
		r.overwriteRows(t, 100)
		r.awaitError(t, "no space left")
		for range 5 { // the application goes on
			r.overwriteRows(t, 10)
		}
		if left := r.temporaries(t); len(left) > 0 {
			t.Errorf("%q take room on the full disk", left)
		}
		remove(t, full)
		r.mends(t, 1)
		return
	}
	r.mends(t, 0)
}

func TestFileThatMayNotGrowWhileSpooling(t *testing.T) {
	t.Parallel()
	r := newReporting(t, t.TempDir())
	r.start(t)
	r.roomyLog(t)
	r.limit(t, unix.RLIMIT_FSIZE, 64<<10)
	r.overwriteRows(t, 100)
	r.awaitError(t, "file too large")
	for range 5 {
		r.overwriteRows(t, 10)
	}
	if left := r.temporaries(t); len(left) > 0 {
		t.Errorf("%q were left", left)
	}
	r.limit(t, unix.RLIMIT_FSIZE, unix.RLIM_INFINITY)
	r.mends(t, 1)
}

// limit sets a limit of the running sidecar that can be raised again.
func (r *reporting) limit(t *testing.T, resource int, value uint64) {
	t.Helper()
	var now unix.Rlimit
	err := unix.Prlimit(r.sidecar.Pid(), resource, nil, &now)
	if err == nil {
		now.Cur = min(value, now.Max)
		err = unix.Prlimit(r.sidecar.Pid(), resource, &now, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestTooManyOpenFiles(t *testing.T) {
	t.Parallel()
	r := newReporting(t, t.TempDir())
	r.start(t)
	r.commit(t, 3)
	r.settled(t)
	r.limit(t, unix.RLIMIT_NOFILE, 8)
	r.commit(t, 3)
	r.awaitLogged(t, "too many open files", "unable to open database file")
	r.commit(t, 3)
	r.limit(t, unix.RLIMIT_NOFILE, 1024)
	r.mends(t, 1)
}

func TestTooManyOpenFilesWhenTheDatabaseIsReplaced(t *testing.T) {
	t.Parallel()
	r := newReporting(t, t.TempDir())
	r.start(t)
	together(setAside, commits(5), bare)(t, &r.victim)
	r.limit(t, unix.RLIMIT_NOFILE, 8)
	moveIn(t, &r.victim)
	r.awaitLogged(t, "too many open files", "unable to open database file")
	r.limit(t, unix.RLIMIT_NOFILE, 1024)
	r.awaitRestored(t, r.kept)
	r.commit(t, 3)
	r.mends(t, 1)
}

func TestSidecarThatStoodStillBesideABusyWriter(t *testing.T) {
	t.Parallel()
	r := newReporting(t, t.TempDir())
	r.start(t)
	r.leave(t)
	load := testdb.Load{Seed: 3, Rate: 200, Payload: 300, Churn: 2, Body: 2000}
	w := testdb.StartWriter(t, r.path, load)
	for range 3 {
		rig.Pause(t, 300*time.Millisecond)
		r.sidecar.Signal(t, syscall.SIGSTOP)
		rig.Pause(t, 3*time.Second)
		r.sidecar.Signal(t, syscall.SIGCONT)
	}
	if sum := w.Stop(t); sum.Busy > 0 {
		t.Errorf("the writer found the database locked %d times", sum.Busy)
	}
	r.mends(t, 0)
}
