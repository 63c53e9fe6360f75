package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/leaser"
)

// standby follows the primary, whoever that is, until ctx ends.
func (n *node) standby(ctx context.Context) error {
	n.publish()
	var group errgroup.Group
	for _, f := range n.databases {
		group.Go(func() error { return f.Follow(ctx) })
	}
	return group.Wait()
}

// primary serves the databases for one term, which ctx ends. It returns once
// nobody writes any more.
func (n *node) primary(ctx context.Context, lease *leaser.Lease) error {
	begun := time.Now()
	t := newTerm(n, lease)
	if err := t.promote(ctx); err != nil {
		return errors.Join(err, n.letAll())
	}
	n.log.Info("promoted", "generation", lease.Generation(), "after", time.Since(begun).Round(time.Millisecond))
	err := t.serve(ctx)
	n.publish()
	for _, f := range n.databases {
		err = errors.Join(err, f.let()) // writers are kept out until it is settled how it stands
	}
	return err
}

// promote does what comes before anybody may write.
func (t *term) promote(ctx context.Context) error {
	if err := t.claim(ctx); err != nil {
		return err
	}
	t.lease.Heads(t.heads)
	role := t.node.Role()
	role.Role, role.Generation = rolePrimary, t.lease.Generation()
	err := t.node.onPromote.Run(ctx, role)
	if ctx.Err() == nil {
		t.node.troubles.note(keyOnPromote, err)
	}
	if err != nil {
		return err
	}
	if err := t.lease.Serving(ctx); err != nil {
		return err
	}
	return t.begin(ctx)
}

// serve replicates while the application runs, until ctx ends, a database is
// fenced or the application has ended.
func (t *term) serve(ctx context.Context) error {
	n := t.node
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	// What is under way ends with the lease, or when all is uploaded.
	held, done := t.lease.WhileHeld(context.WithoutCancel(ctx))
	defer done()
	life, end := context.WithCancel(held)
	defer end()
	t.sidecar.fenced = func(err error) { leave(err) }
	n.setTerm(t)
	defer n.setTerm(nil)
	var workers errgroup.Group
	workers.Go(func() error { return t.sidecar.Run(life) })
	workers.Go(func() error { t.sidecar.tend(life); return nil })
	t.ready(ctx)
	n.publish()
	appErr := t.application(ctx)
	n.publish() // not the primary any more, for who looks
	shut := n.shutGates(ctx)
	err := t.finish(ctx, held)
	end()
	err = errors.Join(appErr, err, workers.Wait(), shut.Open(), t.sidecar.Close())
	n.shutBetween(ctx)
	if hookErr := n.onDemote.Run(context.WithoutCancel(ctx), n.demoted()); hookErr != nil {
		n.log.Error("hook failed", "error", hookErr)
	}
	if cause := context.Cause(ctx); isFenced(cause) {
		err = errors.Join(err, cause)
	}
	return err
}

// ready returns once each database may be written to, or has failed to get there:
// before, nobody is told that this node is the primary.
func (t *term) ready(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for _, d := range t.sidecar.databases {
		for !d.tried() {
			select {
			case <-ctx.Done():
				return
			case <-d.opened:
			case <-tick.C:
			}
		}
	}
	t.open.Store(true)
}

// finish brings the last commits to the replica, unless the lease is lost. What
// does not get there stays here, for the next start.
func (t *term) finish(ctx, held context.Context) error {
	if held.Err() != nil {
		t.node.log.Error("the lease was lost: nothing is uploaded any more", "error", context.Cause(held))
		return nil
	}
	begin := time.Now()
	limit := t.node.cfg.ShutdownTimeout
	deadline, cancel := context.WithTimeoutCause(held, limit, fmt.Errorf("the shutdown-timeout of %s is over", limit))
	defer cancel()
	err := t.sidecar.Finish(deadline)
	if err == nil {
		t.node.log.Info("handing over: all is uploaded", "after", time.Since(begin).Round(time.Millisecond))
	}
	return err
}

// application runs the child, and returns when it has ended; without one, when
// ctx ends.
func (t *term) application(ctx context.Context) error {
	n := t.node
	switch {
	case n.cfg.HA.ExecRole == execAny && len(n.app.command) > 0:
		<-ctx.Done()
		n.app.tell()
		if n.ending() {
			<-n.appEnded // it may write until then
		}
		return nil
	case len(n.app.command) == 0:
		<-ctx.Done()
		return nil
	}
	if err := t.protected(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	err := n.app.run(ctx, n.Role(), func() time.Duration { return n.grace(t.lease) })
	if ctx.Err() == nil {
		n.end(err) // by itself: so the process ends too
	}
	return nil
}

// protected waits until all databases are on their replicas, but for those that
// cannot be claimed while nobody can write to them.
func (t *term) protected(ctx context.Context) error {
	n := t.node
	n.log.Info("waiting for the databases to be on their replicas before the child starts")
	var group errgroup.Group
	for i, d := range t.sidecar.databases {
		if f := n.databases[i]; f.isLocked() {
			f.log.Warn("the child starts without the database: it cannot be served yet, and is locked")
			continue
		}
		group.Go(func() error { return d.Protected(ctx) })
	}
	return group.Wait()
}

// grace is how long the application has to end.
func (n *node) grace(lease *leaser.Lease) time.Duration {
	stop := n.cfg.HA.Lease.Times.Stop
	if left := lease.Remaining(); left > 0 {
		return max(stop, min(left, n.cfg.ShutdownTimeout, n.cfg.HA.Lease.Times.Deadline)*2/3)
	}
	return stop
}
