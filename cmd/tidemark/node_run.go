package main

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/leaser"
)

// Run takes part in the election until a signal ends it.
func (n *node) Run(ctx context.Context, l listeners) error {
	phases := func(hard, soft context.Context, caught *signals) error {
		n.app.signals = caught.child
		return n.phases(hard, soft, l)
	}
	return supervise(ctx, passedOn(n.app.command), func() { logVersions(n.log) }, phases)
}

// phases does the work; soft ends when it is to stop.
func (n *node) phases(hard, soft context.Context, l listeners) error {
	life, finish := context.WithCancel(hard)
	defer finish()
	soft, n.quit = context.WithCancelCause(soft)
	defer n.quit(nil)
	workers, broken := errgroup.WithContext(life)
	workers.Go(func() error { return n.serve(life, l) })
	workers.Go(func() error { n.watch(life); return nil })
	if n.reaper != nil {
		workers.Go(func() error { _ = n.reaper.Run(life); return nil })
	}
	context.AfterFunc(broken, func() { n.quit(context.Cause(broken)) })
	context.AfterFunc(soft, n.noteOver)
	if n.cfg.HA.ExecRole == execAny && len(n.app.command) > 0 {
		workers.Go(func() error { return n.anyRole(soft) })
	}
	err := n.probe(soft)
	if err == nil {
		err = n.leaser.Elect(soft, leaser.Roles{Standby: n.standby, Primary: n.primary})
	}
	if cause := context.Cause(soft); errors.Is(err, cause) || errors.Is(err, context.Canceled) {
		err = n.why()
	}
	n.quit(err)
	n.publish()
	finish()
	return errors.Join(err, workers.Wait(), n.Close())
}

// anyRole runs the child whatever the role is, once the databases are there and
// the first role is known.
func (n *node) anyRole(soft context.Context) error {
	defer close(n.appEnded)
	for _, f := range n.databases {
		select {
		case <-soft.Done():
			return nil
		case <-f.first:
		}
	}
	if n.awaitRole(soft) != nil {
		return nil
	}
	n.publish() // what it is told at its start is no change
	n.app.forget()
	err := n.app.run(soft, n.Role(), func() time.Duration { return n.cfg.ShutdownTimeout * 2 / 3 })
	if soft.Err() == nil {
		n.end(err)
	}
	return nil
}

// end ends the process, with an error or without.
func (n *node) end(err error) {
	n.mu.Lock()
	n.ended = err
	n.mu.Unlock()
	n.quit(errStopped)
}

// why is the error that the process ends with.
func (n *node) why() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ended
}

func (n *node) noteOver() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
}

// ending tells whether the process is about to end.
func (n *node) ending() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.over
}

func (n *node) setTerm(t *term) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.term = t
}

// Report is the state of all databases.
func (n *node) Report() Report {
	n.mu.Lock()
	t := n.term
	n.mu.Unlock()
	role := n.Role()
	r := Report{PID: os.Getpid(), Version: currentVersions().Tidemark, Started: n.started}
	if t != nil {
		r = t.sidecar.Report()
		r.Started = n.started
		for i, d := range r.Databases {
			r.Databases[i].Quarantined = waitingAside(d.Path)
		}
	} else {
		for _, f := range n.databases {
			r.Databases = append(r.Databases, f.Report())
		}
	}
	r.Lease = &role
	return r
}
