//go:build !linux

package replica

import "golang.org/x/sys/unix"

// queryLock sees the locks of other processes only.
const queryLock = unix.F_GETLK
