//go:build !linux

package testbucket

import "syscall"

// dieWithParent needs Linux; elsewhere a killed test leaves its server behind.
func dieWithParent() *syscall.SysProcAttr { return nil }
