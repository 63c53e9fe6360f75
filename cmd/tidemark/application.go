package main

import (
	"context"
	"log/slog"
	"os"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/child"
)

// handlerTime is how long a program has from its start to install its handler of
// SIGHUP, which would end it.
const handlerTime = time.Second

// application is the child process of a node, which runs in a group of its own.
type application struct {
	command []string
	signals <-chan os.Signal // for it; those that end this process are not passed on
	reaper  *child.Reaper    // nil: none is needed
	log     *slog.Logger
	changed chan struct{} // capacity 1: the role is another one, tell it by SIGHUP
}

// run starts the application with its role in the environment and waits for its
// end. When ctx ends it is asked to end by SIGTERM and, after grace, killed with
// all that it started. The error is a *childError if it ended with another code
// than 0 by itself.
func (a *application) run(ctx context.Context, role RoleReport, grace func() time.Duration) error {
	kill, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	signals := make(chan os.Signal, 8)
	ended := make(chan struct{})
	var group errgroup.Group
	group.Go(func() error {
		a.relay(ctx, signals, ended, func() { time.AfterFunc(grace(), cancel) })
		return nil
	})
	a.log.Info("child starting", "program", a.command[0], "role", role.Role) // arguments may hold secrets
	code, err := child.Command{
		Args: a.command, Signals: signals, Env: role.environment(), Group: true, Reaper: a.reaper,
	}.Run(kill)
	close(ended)
	_ = group.Wait()
	if err != nil {
		return err
	}
	a.log.Info("child ended", "code", code)
	if code == 0 || ctx.Err() != nil {
		return nil
	}
	return &childError{program: a.command[0], code: code}
}

// relay passes on what the child is to know until it has ended.
func (a *application) relay(ctx context.Context, signals chan<- os.Signal, ended <-chan struct{}, stopping func()) {
	pass := func(s os.Signal) {
		select {
		case signals <- s:
		default: // the child is far behind
		}
	}
	done := ctx.Done()
	var changed <-chan struct{}
	able := time.After(handlerTime)
	for {
		select {
		case <-ended:
			return
		case <-able:
			changed = a.changed
		case <-done:
			done = nil
			pass(syscall.SIGTERM)
			stopping()
		case <-changed:
			pass(syscall.SIGHUP)
		case s := <-a.signals:
			if s != syscall.SIGTERM && s != syscall.SIGINT {
				pass(s)
			}
		}
	}
}

// forget takes back what was to be told.
func (a *application) forget() {
	select {
	case <-a.changed:
	default:
	}
}

// tell lets a running child know that the role is another one.
func (a *application) tell() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}
