package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
)

var (
	// errStopped is the cause of a stop that a signal asked for.
	errStopped = errors.New("stopped by a signal")
	// errAborted is the cause of the end that a second signal forced.
	errAborted = errors.New("ended at once by a second signal; the last commits may be missing on the replica")
)

// repeat is how long after the first the same signal is the same wish: timeout
// and some shells signal the process and then its whole group.
const repeat = 500 * time.Millisecond

// signals turns those of the operating system into a stop and, at the second
// one, an abort, and passes all on to the child.
type signals struct {
	received chan os.Signal
	child    chan os.Signal // for child.Command
	stop     context.CancelCauseFunc
	abort    context.CancelCauseFunc
}

// catchSignals begins to catch what stops a process, and more for a child.
func catchSignals(stop, abort context.CancelCauseFunc, more ...os.Signal) *signals {
	s := &signals{received: make(chan os.Signal, 8), child: make(chan os.Signal, 8), stop: stop, abort: abort}
	// A log that nobody reads any more ends no replication.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signal.Notify(s.received, append(more, syscall.SIGINT, syscall.SIGTERM)...)
	return s
}

// Run handles signals until done is closed.
func (s *signals) Run(done <-chan struct{}) error {
	defer signal.Stop(s.received)
	var first os.Signal
	var at time.Time
	for {
		select {
		case <-done:
			return nil
		case sig := <-s.received:
			stops := sig == syscall.SIGINT || sig == syscall.SIGTERM
			if stops && sig == first && time.Since(at) < repeat {
				continue
			}
			s.pass(sig)
			switch {
			case !stops:
			case first == nil:
				first, at = sig, time.Now()
				s.stop(errStopped)
			default:
				s.abort(errAborted)
			}
		}
	}
}

// pass leaves a signal for the child. A terminal sends an interrupt to the
// child too, which must not get it twice.
func (s *signals) pass(sig os.Signal) {
	if sig == syscall.SIGINT && isatty.IsTerminal(os.Stdin.Fd()) {
		return
	}
	select {
	case s.child <- sig:
	default: // the child is far behind
	}
}
