package main

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/turns"
)

const (
	// glance is how often a database that others wait for is asked whether it
	// can be left.
	glance = 5 * time.Millisecond
	// calm is how long a database must have been quiet after commits to be
	// left: by then its WAL is copied back.
	calm = 350 * time.Millisecond
	// share is how long one that never is quiet may go on while others wait.
	share = 2 * time.Second
	// idleFor is after how long a database is left that nobody wrote to, where
	// not all can stay open: a parked one costs less, and its application is
	// alone with it.
	idleFor = 15 * time.Second
	// patient is how long files of a database that is gone are given.
	patient = 30 * time.Second
)

// errLeave ends the work of a turn, not the database's.
var errLeave = errors.New("others wait")

// Turn implements turns.Work.
func (s *slot) Turn(ctx context.Context, t *turns.Turn) turns.Next {
	t.Look()
	if s.isGone() && s.fenced() != nil {
		s.dismiss()
		return turns.Next{}
	}
	if s.isDone() || s.idle() && !s.hosting() {
		s.finished(s.fenced())
		return turns.Next{}
	}
	if name := s.heldUp(t); name != "" {
		return turns.Next{Until: name}
	}
	if wait := s.tooSoon(); wait > 0 && !s.hosting() {
		return turns.Next{After: wait}
	}
	started := time.Now()
	d, err := s.begin(ctx)
	if err != nil {
		s.complain(err)
		return turns.Next{After: s.note(err)}
	}
	left, err := s.work(ctx, d, t)
	t.Look()
	p, ok, closeErr := s.park(ctx, d, left)
	if !ok && closeErr == nil && left == quiet { // it was active a moment ago
		s.noteActive()
		left, err = s.work(ctx, d, t)
		t.Look()
		p, ok, closeErr = s.park(ctx, d, left)
	}
	if !ok {
		closeErr = errors.Join(closeErr, d.Close())
	}
	s.end(d, p)
	if ctx.Err() != nil {
		return turns.Next{}
	}
	if err == nil && closeErr != nil {
		err, left = closeErr, broken
		s.complain(err)
	}
	return s.next(left, err, started)
}

// tooSoon is how long the database has to wait for its next upload.
func (s *slot) tooSoon() time.Duration {
	if s.folder.fleet.isEnding() {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.last.next)
}

// heldUp names an outage that lasts, if others need the place more than this
// database needs to find that out for itself.
func (s *slot) heldUp(t *turns.Turn) string {
	f := s.folder.fleet
	s.mu.Lock()
	awaited := f.guarded && !s.safe || s.gone
	s.mu.Unlock()
	if awaited || f.isEnding() || !t.Wanted() || t.Probing() {
		return ""
	}
	for _, kind := range []condition{away, tipless} {
		if name := s.folder.outage(kind); f.line.Held(name) {
			return name
		}
	}
	return ""
}

// work replicates until the database can be left, and says in what condition.
func (s *slot) work(ctx context.Context, d *replicated, t *turns.Turn) (left condition, err error) {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	var group errgroup.Group
	group.Go(func() error {
		defer leave(errLeave)
		err := d.Run(ctx)
		if isFenced(err) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		defer leave(errLeave)
		left, err = s.keep(ctx, d, t)
		return nil
	})
	s.mu.Lock()
	watched := s.folder.fleet.guarded && !s.safe
	s.mu.Unlock()
	if watched {
		group.Go(func() error {
			if d.Protected(ctx) == nil {
				s.nowSafe()
			}
			return nil
		})
	}
	if fenced := group.Wait(); fenced != nil {
		s.folder.log.Error("replication given up", "db", s.path, "error", fenced)
		return lost, fenced
	}
	return left, err
}

// keep waits until the database can and should be left.
func (s *slot) keep(ctx context.Context, d *replicated, t *turns.Turn) (condition, error) {
	s.mu.Lock()
	poke, gone := s.poke, s.gone
	s.mu.Unlock()
	look, troubled := idleFor, s.inTrouble()
	if troubled {
		look = time.Second
	}
	rest := time.NewTicker(look)
	defer rest.Stop()
	for !gone {
		if t.Wanted() && !s.folder.fleet.isEnding() {
			if left, err := s.yield(ctx, d, t); left != opening {
				return left, err
			}
		}
		select {
		case <-ctx.Done():
			return lost, nil
		case <-s.folder.fleet.ending:
			return s.finish(ctx, d, t)
		case <-poke:
			gone = true
		case <-rest.C:
			if c, _ := d.condition(true); troubled && (c == quiet || c == busy || c == paced) {
				s.note(nil)
				troubled = false
				rest.Reset(idleFor)
			}
			if s.folder.fleet.isScarce() && d.idleFor() > idleFor && !s.hosting() {
				return quiet, nil
			}
		case <-t.Asked():
		}
		gone = gone || s.isGone()
	}
	began := time.Now()
	return s.until(ctx, d, func(c condition) bool {
		return c == quiet || c == paced && time.Since(began) > patient || c != busy && c != opening && t.Wanted()
	})
}

// yield waits for a condition in which the database can be left while others
// want its place; opening says that they do not any more, or that all end.
func (s *slot) yield(ctx context.Context, d *replicated, t *turns.Turn) (condition, error) {
	begin := time.Now()
	asked := true
	left, err := s.until(ctx, d, func(c condition) bool {
		if asked = t.Wanted() && !s.folder.fleet.isEnding(); !asked || c > drained {
			return true
		}
		if s.hosting() {
			begin = time.Now()
			return false
		}
		if c != busy && c != opening {
			return true
		}
		if c == busy && time.Since(begin) > share {
			s.folder.fleet.warnCrowded()
			d.stopCapturing() // what it has is uploaded, then it is quiet
		}
		return false
	})
	if !asked && left != lost {
		return opening, nil
	}
	return left, err
}

// until looks at the database until it is in a condition that will do.
func (s *slot) until(ctx context.Context, d *replicated, will func(condition) bool) (condition, error) {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		s.mu.Lock()
		active := s.last.active
		s.mu.Unlock()
		if c, err := d.condition(active); will(c) {
			return c, err
		}
		select {
		case <-ctx.Done():
			return lost, nil
		case <-tick.C:
		}
	}
}
