package main

import (
	"context"
	"time"

	"github.com/tidemark-io/tidemark/leaser"
)

// Role is what the node is now.
func (n *node) Role() RoleReport {
	s := n.leaser.Status()
	if s.LastError == "" && s.Role != leaser.Primary {
		s.LastError = n.troubles.text(s)
	}
	r := RoleReport{
		Role: string(s.Role.Shown()), Node: n.identity.Name, Generation: s.Holder.Generation,
		Degraded: s.Degraded, Primary: s.Holder.Advertise, Since: s.Since.UTC(), Error: s.LastError,
	}
	if s.Generation > 0 {
		r.Generation = s.Generation
	}
	if s.Holder.State == leaser.Handoff || s.Holder.Leaving || s.Leaving {
		r.HandingOver, r.Successor = true, s.Holder.Successor
	}
	if r.HandingOver || s.Holder.State == leaser.Released {
		r.Primary = ""
	} else {
		r.Holder = s.Holder.Node()
	}
	if s.Role != leaser.Primary {
		return r
	}
	if s.Leaving || s.Remaining <= 0 || !n.open() { // its application is being stopped, or may not write yet
		r.Role = roleFollower
		return r
	}
	r.Remaining = s.Remaining.Milliseconds()
	return r
}

// awaitRole returns once the role is one that may last: before, this node knows
// nobody, or is being promoted. It does not wait for longer than that may take.
func (n *node) awaitRole(ctx context.Context) error {
	times := n.cfg.HA.Lease.Times
	limit := time.After(times.Wait + times.Jitter + times.TTL)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		s := n.leaser.Status()
		follows := s.Generation == 0 && s.Holder.Generation > 0 && s.Holder.State != leaser.Released && s.Holder.State != leaser.Handoff
		if role := n.Role().Role; follows || role == rolePrimary || role == roleCutOff {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit:
			return nil
		case <-tick.C:
		}
	}
}

// open tells whether applications may write, as far as the databases go.
func (n *node) open() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.term != nil && n.term.open.Load()
}

// demoted is the role after a term.
func (n *node) demoted() RoleReport {
	r := n.Role()
	if r.Role == rolePrimary {
		r.Role, r.Remaining = roleFollower, 0
	}
	return r
}

// publish tells everybody the role who wants to know.
func (n *node) publish() {
	r := n.Role()
	if n.ending() {
		r = n.demoted()
	}
	if err := n.file.Write(r); n.troubles.note("role-file", err) {
		n.log.Error("the role is not told", "error", err)
	}
	n.mu.Lock()
	changed := n.told != "" && n.told != r.Role
	n.told = r.Role
	n.mu.Unlock()
	if changed && n.cfg.HA.ExecRole == execAny {
		n.app.tell()
	}
}
