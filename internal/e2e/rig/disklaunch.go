package rig

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// launchArg is the first argument of a test binary that is to become another
// program whose disk a test can spoil.
const launchArg = "rig-launch"

// launchSocket is the descriptor over which the test gets the one that tells of
// system calls.
const launchSocket = 3

// launch becomes the program that the arguments name, if they are for it. Its
// system calls that read, write or sync a file wait until the test lets them go
// on or fail.
func launch() {
	if len(os.Args) < 3 || os.Args[1] != launchArg {
		return
	}
	err := superviseSelf()
	if err == nil {
		err = syscall.Exec(os.Args[2], os.Args[2:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, "launch:", err)
	os.Exit(1)
}

// superviseSelf installs the filter on this thread, which the next program
// begins with. From then on nothing may be written before the test listens.
func superviseSelf() error {
	runtime.LockOSThread()
	program := supervised(unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_WRITE, unix.SYS_FSYNC, unix.SYS_FDATASYNC)
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	unix.CloseOnExec(launchSocket)
	// Without this only root may have a filter.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		return fmt.Errorf("supervise system calls: %w", errno)
	}
	err := unix.Sendmsg(launchSocket, []byte{0}, unix.UnixRights(int(fd)), nil, 0)
	return errors.Join(err, unix.Close(int(fd)))
}

// supervised is a filter that has others decide on these system calls.
func supervised(calls ...uint32) []unix.SockFilter {
	const load, equal, give = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	program := []unix.SockFilter{{Code: load, K: 0}} // the number of the call
	for i, call := range calls {
		program = append(program, unix.SockFilter{Code: equal, Jt: uint8(len(calls) - i), K: call})
	}
	return append(program,
		unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: give, K: unix.SECCOMP_RET_USER_NOTIF})
}
