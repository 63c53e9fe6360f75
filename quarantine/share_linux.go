package quarantine

import (
	"os"

	"golang.org/x/sys/unix"
)

// share makes out share the blocks of in, and tells whether it does.
func share(out, in *os.File) bool {
	return unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil
}
