package replica

import "golang.org/x/sys/unix"

// queryLock also sees the locks of this process itself.
const queryLock = unix.F_OFD_GETLK
