package testbucket

import "syscall"

// dieWithParent ends the server when the test's process is killed.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
