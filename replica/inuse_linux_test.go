package replica_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tidemark-io/tidemark/replica"
)

func TestALockWithoutAProcessIsNotThatOfProcessMinusOne(t *testing.T) {
	h := newHistory(t, 512)
	h.write(2, 10)
	path := filepath.Join(t.TempDir(), "app.db")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: 0x40000000, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock); err != nil {
		t.Fatal(err)
	}
	err = h.restoreTo(path, replica.ReplaceExisting)
	if !errors.Is(err, replica.ErrInUse) || !strings.Contains(err.Error(), "a process holds a lock on") {
		t.Errorf("got %v", err)
	}
}
