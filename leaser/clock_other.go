//go:build !linux

package leaser

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime is a time that never steps. On macOS it goes on while the machine
// sleeps; elsewhere the wall clock alone may tell of sleep.
func bootTime() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // every system that builds this has it
	return time.Duration(now.Nano())
}
