package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/ltx"
)

// patienceForTurn is how long a snapshot waits for its database to be opened.
const patienceForTurn = 20 * time.Second

// pauseOfWarnings is the shortest time between two warnings about different
// databases.
const pauseOfWarnings = time.Minute

// errNoTurn says that a database could not be opened.
var errNoTurn = errors.New("the database was not opened in time")

// guests need a database that is open. They are guarded by the tender.
type guests struct {
	inside int
	door   chan struct{} // closed when it is opened; nil: nobody waits
}

// letIn lets those in who wait.
func (g *guests) letIn() {
	if g.door != nil {
		close(g.door)
		g.door = nil
	}
}

// do looks after the replica once.
func (v *visit) do(ctx context.Context) {
	t := v.tender
	w, err := t.worker(ctx, v.slot)
	next := time.Now().Add(time.Second)
	borrowed := err == nil && t.borrow(v.slot, w)
	if borrowed {
		next, err = w.Tend(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.signal()
	t.running--
	if borrowed {
		v.worker, v.last = nil, w.Status()
	}
	if t.visits[v.slot] != v || ctx.Err() != nil {
		return
	}
	v.note(err)
	if err != nil {
		next = time.Now().Add(min(longestRetry, 10*time.Second<<min(v.failures, 8)))
	}
	meanwhile := v.due
	if v.worker == nil {
		v.due = time.Time{}
	}
	t.plan(v, spread(next))
	if err == nil {
		t.plan(v, meanwhile)
	}
}

// note logs the first error of an outage, and its end; of several databases in
// trouble one, because what is wrong is likely the bucket. The caller holds mu.
func (v *visit) note(err error) {
	log := v.slot.folder.log.With("db", v.slot.path)
	switch {
	case err == nil && v.told:
		log.Info("compaction recovered", "failures", v.failures)
		fallthrough
	case err == nil:
		v.failures, v.told = 0, false
	default:
		if t := v.tender; v.failures == 0 && time.Since(t.warned) > pauseOfWarnings {
			log.Warn("compaction failed, trying again later", "error", err)
			t.warned, v.told = time.Now(), true
		}
		v.failures++
	}
}

// worker makes one for the replica of a database.
func (t *tender) worker(ctx context.Context, s *slot) (*keeper, error) {
	cfg, err := s.config()
	if err != nil {
		return nil, err
	}
	place, err := cfg.Replica.locate()
	if err != nil {
		return nil, err
	}
	log := s.folder.log.With("db", s.path)
	r, err := t.fleet.buckets.remote(ctx, place, log)
	if err != nil {
		return nil, err
	}
	return t.workshop.worker(r, compaction.Options{
		Config: cfg.compaction, Snapshotter: visitor{t, s}, Log: log, Metrics: t.fleet.buckets.metrics.compaction(s.path),
	}), nil
}

// visitor makes snapshots of a database that may have to be opened.
type visitor struct {
	tender *tender
	slot   *slot
}

// Snapshot implements compaction.Snapshotter.
func (v visitor) Snapshot(ctx context.Context, w io.Writer) (ltx.Pos, error) {
	soon, cancel := context.WithTimeoutCause(ctx, patienceForTurn, errNoTurn)
	defer cancel()
	d, leave, err := v.tender.enter(soon, v.slot)
	if err != nil {
		return ltx.Pos{}, err
	}
	defer leave()
	return d.snapshot(ctx, w)
}

// enter has a database opened, if it is not, and keeps it open until leave is
// called.
func (t *tender) enter(ctx context.Context, s *slot) (d *replicated, leave func(), err error) {
	t.mu.Lock()
	t.of(s).guests.inside++
	t.mu.Unlock()
	leave = func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.of(s).guests.inside--
	}
	for {
		door := t.door(s)
		s.member.Wake()
		s.mu.Lock()
		d = s.open
		s.mu.Unlock()
		if d != nil {
			if _, err := d.ready(ctx); err != nil {
				leave()
				return nil, nil, err
			}
			return d, leave, nil
		}
		select {
		case <-ctx.Done():
			leave()
			return nil, nil, context.Cause(ctx)
		case <-door:
		}
	}
}

// door is closed when the database is opened.
func (t *tender) door(s *slot) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := &t.of(s).guests
	if g.door == nil {
		g.door = make(chan struct{})
	}
	return g.door
}

// hosting tells whether somebody needs the database open.
func (s *slot) hosting() bool {
	t := s.folder.fleet.tender
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.visits[s]
	return v != nil && v.guests.inside > 0
}

// snapshot writes a snapshot of the database while it is open.
func (d *replicated) snapshot(ctx context.Context, w io.Writer) (ltx.Pos, error) {
	p, err := d.ready(ctx)
	if err != nil {
		return ltx.Pos{}, err
	}
	d.use.RLock()
	defer d.use.RUnlock()
	d.mu.Lock()
	closed := p.closed
	d.mu.Unlock()
	if closed {
		return ltx.Pos{}, capture.ErrNotOpen
	}
	return p.capturer.Snapshot(ctx, w)
}
