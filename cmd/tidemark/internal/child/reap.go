package child

import (
	"errors"
	"syscall"
)

// reap waits for every process that ends below this one, until pid does.
func reap(pid int) (syscall.WaitStatus, error) {
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, err
		case got == pid && (status.Exited() || status.Signaled()):
			return status, nil
		}
	}
}
