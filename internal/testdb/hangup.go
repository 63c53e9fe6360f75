package testdb

import (
	"os"
	"os/signal"
	"syscall"
)

// ChildrenHangUp has the processes that this one starts get SIGHUP, also where
// nohup has had it ignored: a shell cannot trap what it was started to ignore.
func ChildrenHangUp() {
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
}
