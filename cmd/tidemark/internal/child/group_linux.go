package child

import "syscall"

// ownGroup starts a group that dies with the thread that started it, and those
// of this program last as long as it does.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
