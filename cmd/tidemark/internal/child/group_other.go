//go:build !linux

package child

import "syscall"

// ownGroup starts a group that outlives this process if that is killed.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
