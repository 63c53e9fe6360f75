package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/turns"
)

// parkTries is how often it is tried to park a database that was written to a
// moment ago: the next write would leave no trace yet.
const parkTries = 4

// park parks the database; if it is not ok, it has to be closed, unless it is
// given more time.
func (s *slot) park(ctx context.Context, d *replicated, left condition) (p *capture.Parked, ok bool, err error) {
	d.mu.Lock()
	parts := d.parts
	d.mu.Unlock()
	if parts == nil { // it was not opened
		return d.from.resume, true, nil
	}
	if left == lost || ctx.Err() != nil || s.folder.fleet.isEnding() {
		return nil, false, nil
	}
	tick := time.NewTicker(2 * glance)
	defer tick.Stop()
	for range parkTries {
		parked, ok, err := parts.capturer.Park(ctx)
		if ok || err != nil {
			d.noteClosed(ok)
			return &parked, ok, err
		}
		select {
		case <-ctx.Done():
			return nil, false, nil
		case <-tick.C:
		}
		if err := parts.capturer.Capture(ctx); err != nil {
			return nil, false, nil // it says so itself, and again in the next turn
		}
	}
	return nil, false, nil
}

// next says when the database takes its next turn.
func (s *slot) next(left condition, err error, started time.Time) turns.Next {
	if isFenced(err) {
		s.note(err)
		s.finished(err)
		s.nowSafe() // nothing is to be waited for
		if !s.isGone() {
			return turns.Next{}
		}
		left = quiet
	}
	switch {
	case s.isGone() && (left == quiet || left == drained || !s.hasDirectory() || left == paced && time.Since(started) > patient):
		s.dismiss()
		return turns.Next{}
	case (left == away || left == tipless) && !s.folder.workedSince(started):
		s.note(err)
		return turns.Next{Until: s.folder.outage(left)}
	case left == away, left == tipless, left == broken:
		pause := s.note(err)
		return turns.Next{After: pause/2 + rand.N(pause/2+1)}
	}
	s.note(nil)
	if left == drained || left == quiet && s.idle() {
		s.finished(nil)
		return turns.Next{}
	}
	return turns.Next{Again: true}
}

// dismiss forgets the database.
func (s *slot) dismiss() {
	s.finished(nil)
	s.nowSafe()
	s.folder.remove(s)
}
