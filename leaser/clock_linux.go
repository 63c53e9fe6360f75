package leaser

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime is the time since the machine started. Go's own monotonic time
// stands still while the machine sleeps.
func bootTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // there since Linux 2.6
	}
	return time.Duration(now.Nano())
}
