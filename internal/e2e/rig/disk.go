package rig

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Disk is what a program believes to be its disk. It can go bad.
type Disk struct {
	listener int
	bad      atomic.Pointer[Spoilt]
	done     atomic.Bool
	failed   atomic.Int64
}

// Spoilt is what fails with EIO on a Disk.
type Spoilt struct {
	Path  string // of a file, or with a slash at its end of all below a directory
	Calls []int32
}

// The system calls that may fail.
var (
	Reads  = []int32{unix.SYS_PREAD64}
	Writes = []int32{unix.SYS_PWRITE64, unix.SYS_WRITE}
	Syncs  = []int32{unix.SYS_FSYNC, unix.SYS_FDATASYNC}
)

// TidemarkOn starts the tidemark binary on a disk that can go bad.
func TidemarkOn(t testing.TB, env []string, args ...string) (*Process, *Disk) {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := &Disk{listener: -1}
	var group errgroup.Group
	t.Cleanup(func() { // the program has been killed by then
		d.done.Store(true)
		if err := group.Wait(); err != nil {
			t.Errorf("supervise a disk: %v", err)
		}
	})
	theirs := os.NewFile(uintptr(ends[1]), "launch")
	p := Start(t, Command{Path: self, Args: append([]string{launchArg, os.Getenv(binaryEnv)}, args...), Env: env, Files: []*os.File{theirs}})
	err = theirs.Close() // or its end would not be noticed
	if err == nil {
		d.listener, err = receive(ends[0])
	}
	if err = errors.Join(err, unix.Close(ends[0])); err != nil {
		t.Fatalf("supervise a disk: %v", err)
	}
	group.Go(d.supervise)
	return p, d
}

// receive gets a descriptor over a socket.
func receive(socket int) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) == 0 {
		return -1, errors.Join(err, errors.New("no descriptor came: system calls cannot be supervised here"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return -1, err
	}
	return fds[0], nil
}

// Spoil lets system calls fail from now on, and no others.
func (d *Disk) Spoil(s Spoilt) {
	d.failed.Store(0)
	d.bad.Store(&s)
}

// Mend lets all system calls go on.
func (d *Disk) Mend() { d.bad.Store(nil) }

// Failed returns how many system calls failed since Spoil.
func (d *Disk) Failed() int64 { return d.failed.Load() }

// What the kernel tells of a system call, and what it is told (seccomp.h).
type (
	notice struct {
		id         uint64
		pid, flags uint32
		call       int32
		arch       uint32
		at         uint64
		args       [6]uint64
	}
	verdict struct {
		id    uint64
		value int64
		err   int32
		flags uint32
	}
)

// supervise decides on system calls until the program has ended.
func (d *Disk) supervise() (err error) {
	defer func() { err = errors.Join(err, unix.Close(d.listener)) }()
	for !d.done.Load() {
		wait := []unix.PollFd{{Fd: int32(d.listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(wait, 100); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if wait[0].Revents&unix.POLLIN == 0 {
			if wait[0].Revents != 0 {
				return nil // nobody is left
			}
			continue
		}
		n := notice{}
		if err := d.control(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); err != nil {
			return err
		}
		v := verdict{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		if d.refuses(n) {
			d.failed.Add(1)
			v = verdict{id: n.id, err: -int32(unix.EIO)}
		}
		if err := d.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&v)); err != nil {
			return err
		}
	}
	return nil
}

// control asks the kernel. Whom it was about may be gone meanwhile.
func (d *Disk) control(request uintptr, what unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(d.listener), request, uintptr(what))
		switch errno {
		case 0, unix.ENOENT:
			return nil
		case unix.EINTR:
		default:
			return errno
		}
	}
}

func (d *Disk) refuses(n notice) bool {
	bad := d.bad.Load()
	if bad == nil || !slices.Contains(bad.Calls, n.call) {
		return false
	}
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", n.pid, n.args[0]))
	if err != nil {
		return false
	}
	return path == bad.Path || strings.HasSuffix(bad.Path, "/") && strings.HasPrefix(path+"/", bad.Path)
}
