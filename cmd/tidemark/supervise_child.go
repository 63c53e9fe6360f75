package main

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/child"
)

// application runs the child once the databases are protected, and returns
// when it has ended; without a child, when it is time to stop.
func (s *supervisor) application(hard, soft context.Context, caught *signals) error {
	if len(s.command) == 0 {
		<-soft.Done()
		return nil
	}
	s.sidecar.log.Info("waiting for the databases to be on their replicas before the child starts")
	if err := s.sidecar.Protected(soft); err != nil {
		if errors.Is(context.Cause(soft), errStopped) {
			return errors.New("stopped before the child was started: the databases were not on their replicas yet")
		}
		if soft.Err() != nil {
			return nil // the cause is reported by who ended it
		}
		return err
	}
	kill, cancel := context.WithCancel(hard)
	defer cancel()
	context.AfterFunc(soft, func() {
		if !errors.Is(context.Cause(soft), errStopped) {
			caught.pass(syscall.SIGTERM) // nobody else told it
		}
		time.AfterFunc(s.timeout*2/3, cancel) // the rest is for the last upload
	})
	s.sidecar.log.Info("child starting", "program", s.command[0]) // arguments may hold secrets
	code, err := child.Command{Args: s.command, Signals: caught.child, Reap: os.Getpid() == 1}.Run(kill)
	if err != nil {
		return err
	}
	s.sidecar.log.Info("child ended", "code", code)
	if code == 0 {
		return nil
	}
	return &childError{program: s.command[0], code: code}
}
