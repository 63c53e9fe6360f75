// Package filelock takes advisory locks of files, and asks for those of others:
// whole files by flock(2), and ranges of bytes by fcntl(2), as SQLite locks its
// databases.
package filelock

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrHeld means that somebody else holds a lock that excludes the one wanted.
var ErrHeld = errors.New("locked by another")

// Exclusive locks a whole file, without waiting, until its descriptor is closed.
// It wraps ErrHeld.
func Exclusive(f *os.File) error { return lock(f, unix.LOCK_EX) }

// Shared is Exclusive for a lock that many may hold together.
func Shared(f *os.File) error { return lock(f, unix.LOCK_SH) }

func lock(f *os.File, how int) error {
	err := control(f, func(fd int) error { return unix.Flock(fd, how|unix.LOCK_NB) })
	return failed(f, err, unix.EWOULDBLOCK)
}

// ExclusiveNamed is Exclusive for a file that others remove when they find it
// unlocked. named false: another process holds it, or the file has lost its
// name.
func ExclusiveNamed(f *os.File) (named bool, err error) {
	if err := Exclusive(f); err != nil {
		if errors.Is(err, ErrHeld) {
			err = nil
		}
		return false, err
	}
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	found, err := os.Lstat(f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, found), err
}

// Kind is what a lock of bytes excludes.
type Kind int16

// Kinds of locks of bytes.
const (
	Read  Kind = unix.F_RDLCK // excludes Write
	Write Kind = unix.F_WRLCK // excludes both
	None  Kind = unix.F_UNLCK // gives a lock up
)

// Set takes or gives up a lock of n bytes, without waiting. It belongs to the
// descriptor and not to the process, so that connections of SQLite in this
// process neither share nor lose it. It wraps ErrHeld.
func Set(f *os.File, kind Kind, first, n int64) error {
	l := unix.Flock_t{Type: int16(kind), Whence: io.SeekStart, Start: first, Len: n}
	err := control(f, func(fd int) error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &l) })
	return failed(f, err, unix.EAGAIN, unix.EACCES)
}

// Other is a lock of somebody else; zero: there is none.
type Other struct {
	Held  bool
	First int64 // byte it begins with
	PID   int   // 0: it belongs to a descriptor, not to a process
}

// String names who holds the lock, as far as that is known.
func (o Other) String() string {
	if o.PID > 0 {
		return fmt.Sprintf("process %d", o.PID)
	}
	return "another process"
}

// OfOthers returns a lock that one of this kind would run into, of whomever:
// also of another descriptor or of SQLite in this process.
func OfOthers(f *os.File, kind Kind, first, n int64) (Other, error) {
	return ask(f, unix.F_OFD_GETLK, kind, first, n)
}

// OfOtherProcesses is OfOthers without what SQLite has locked in this process.
func OfOtherProcesses(f *os.File, kind Kind, first, n int64) (Other, error) {
	return ask(f, unix.F_GETLK, kind, first, n)
}

func ask(f *os.File, how int, kind Kind, first, n int64) (Other, error) {
	l := unix.Flock_t{Type: int16(kind), Whence: io.SeekStart, Start: first, Len: n}
	if err := control(f, func(fd int) error { return unix.FcntlFlock(uintptr(fd), how, &l) }); err != nil {
		return Other{}, fmt.Errorf("ask for locks on %s: %w", f.Name(), err)
	}
	if l.Type == unix.F_UNLCK {
		return Other{}, nil
	}
	return Other{Held: true, First: l.Start, PID: max(0, int(l.Pid))}, nil
}

// control calls do, again when a signal interrupts it, and leaves the mode of
// the descriptor alone, which f.Fd would not.
func control(f *os.File, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	err = conn.Control(func(fd uintptr) {
		for {
			if result = do(int(fd)); !errors.Is(result, unix.EINTR) {
				return
			}
		}
	})
	return errors.Join(err, result)
}

func failed(f *os.File, err error, held ...error) error {
	if err == nil {
		return nil
	}
	for _, h := range held {
		if errors.Is(err, h) {
			err = ErrHeld
		}
	}
	return fmt.Errorf("lock %s: %w", f.Name(), err)
}
