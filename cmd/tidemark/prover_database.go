package main

import (
	"context"
	"errors"

	"github.com/tidemark-io/tidemark/capture"
)

// prove implements provable.
func (d *replicated) prove(ctx context.Context, first uint32, bytes int64) (next uint32, err error) {
	p, err := d.ready(ctx)
	if err != nil {
		return first, err
	}
	d.use.RLock()
	defer d.use.RUnlock()
	d.mu.Lock()
	closed := p.closed
	d.mu.Unlock()
	if closed {
		return first, capture.ErrNotOpen
	}
	return p.capturer.Prove(ctx, first, bytes)
}

// prove implements provable. A database that is parked is opened for it.
func (s *slot) prove(ctx context.Context, first uint32, bytes int64) (next uint32, err error) {
	if err := s.fenced(); err != nil || s.isGone() {
		return first, errors.Join(err, capture.ErrNotOpen)
	}
	parked := !s.isOpen()
	t := s.folder.fleet.tender
	soon, cancel := context.WithTimeoutCause(ctx, patienceForTurn, errNoTurn)
	defer cancel()
	d, leave, err := t.enter(soon, s)
	if err != nil {
		return first, err
	}
	next, err = d.prove(ctx, first, bytes)
	leave()
	if parked && err == nil {
		s.parkAgain(d)
	}
	return next, err
}

// parkAgain ends a turn that was for us alone.
func (s *slot) parkAgain(d *replicated) {
	if c, _ := d.condition(true); c != quiet || s.hosting() || !s.folder.fleet.isScarce() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.poke <- struct{}{}: // nil when it is parked already
	default:
	}
}
