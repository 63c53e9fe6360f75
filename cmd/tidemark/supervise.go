package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// supervisor runs a sidecar from start to end: the child after the databases
// are protected, the last upload after the child.
type supervisor struct {
	sidecar *sidecar
	command []string // of the child; empty: none
	timeout time.Duration
	serve   func(context.Context) error // status; until its context ends
	started func()                      // called once signals are heeded
	stopped atomic.Pointer[time.Time]
}

// Run returns when all is done, or, after a second signal, at once.
func (s *supervisor) Run(ctx context.Context) error {
	return supervise(ctx, passedOn(s.command), s.started, s.phases)
}

// passedOn are the signals that a child gets beside those that stop a process.
// What this process was started to ignore, as nohup does, stays ignored.
func passedOn(command []string) []os.Signal {
	if len(command) == 0 {
		return nil
	}
	all := []os.Signal{syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}
	return slices.DeleteFunc(all, signal.Ignored)
}

// supervise heeds signals while phases does the work: soft ends at the first
// one that stops a process, hard at the second. It returns when phases has, or
// soon after the end of hard.
func supervise(ctx context.Context, more []os.Signal, started func(), phases func(hard, soft context.Context, caught *signals) error) error {
	hard, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	soft, stop := context.WithCancelCause(hard)
	caught := catchSignals(stop, abort, more...)
	started()
	done := make(chan struct{})
	var result error // once done is closed
	var group errgroup.Group
	group.Go(func() error { return caught.Run(done) })
	group.Go(func() error {
		defer close(done)
		result = phases(hard, soft, caught)
		return nil
	})
	select {
	case <-done:
		return errors.Join(result, group.Wait())
	case <-hard.Done():
	}
	select { // what can be closed in order, is
	case <-done:
	case <-time.After(time.Second):
	}
	return context.Cause(hard)
}

// phases does the work; soft ends when it is to stop.
func (s *supervisor) phases(hard, soft context.Context, caught *signals) error {
	life, end := context.WithCancel(hard)
	defer end()
	workers, broken := errgroup.WithContext(life)
	workers.Go(func() error { return s.sidecar.Run(life) })
	workers.Go(func() error { return s.serve(life) })

	soft, stop := context.WithCancelCause(soft)
	defer stop(nil)
	context.AfterFunc(broken, func() { stop(context.Cause(broken)) })
	context.AfterFunc(soft, s.noteStop)
	childErr := s.application(hard, soft, caught)
	s.noteStop()

	deadline, cancel := context.WithDeadlineCause(hard, s.stopped.Load().Add(s.timeout),
		fmt.Errorf("the shutdown-timeout of %s is over", s.timeout))
	defer cancel()
	err := s.sidecar.Finish(deadline)
	end()
	return errors.Join(childErr, err, workers.Wait(), s.sidecar.Close())
}

// noteStop remembers when the end began, once.
func (s *supervisor) noteStop() {
	now := time.Now()
	s.stopped.CompareAndSwap(nil, &now)
}
