package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/turns"
)

// Protected waits until every database that was there at the start is on its
// replica.
func (f *fleet) Protected(ctx context.Context) error {
	for _, d := range f.folders {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-d.scanned:
		}
	}
	return f.await(ctx, f.all(), func(s *slot) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.safe
	})
}

func (s *slot) nowSafe() {
	s.mu.Lock()
	before := s.safe
	s.safe = true
	s.mu.Unlock()
	if !before {
		s.folder.fleet.announce()
	}
}

// finished notes that nothing is left to do for the database when all end.
func (s *slot) finished(err error) {
	if !s.folder.fleet.isEnding() {
		return
	}
	s.note(err)
	s.mu.Lock()
	before := s.done
	s.done = true
	s.mu.Unlock()
	if !before {
		s.folder.fleet.announce()
	}
}

func (s *slot) isDone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

func (f *fleet) isEnding() bool {
	select {
	case <-f.ending:
		return true
	default:
		return false
	}
}

// Finish brings the last commits of every database to its replica. Run must be
// running; ctx is the deadline.
func (f *fleet) Finish(ctx context.Context) error {
	close(f.ending)
	slots := f.all()
	f.line.Rush()
	for _, s := range slots {
		if s.idle() {
			s.finished(s.fenced())
		} else {
			s.member.Wake()
		}
	}
	err := f.await(ctx, slots, func(s *slot) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.done
	})
	if err == nil {
		return nil
	}
	var errs []error
	for _, s := range slots {
		s.mu.Lock()
		if !s.done {
			errs = append(errs, fmt.Errorf("database %s: the last commit is not on the replica: %w", s.path, s.why(err)))
		}
		s.mu.Unlock()
	}
	return few(errs)
}

// why adds to err what held the database up. The caller holds mu.
func (s *slot) why(err error) error {
	if s.open != nil {
		return s.open.reason(err)
	}
	if t := s.last.trouble; t != nil {
		return fmt.Errorf("%w; last error: %w", err, t.err)
	}
	return err
}

// finish brings the last commits to the replica, unless something is in the
// way and others want the place.
func (s *slot) finish(ctx context.Context, d *replicated, t *turns.Turn) (condition, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	left, reason := lost, error(nil)
	var group errgroup.Group
	group.Go(func() error {
		defer cancel()
		return d.Finish(ctx)
	})
	group.Go(func() error {
		defer cancel()
		left, reason = s.until(ctx, d, func(c condition) bool { return (c == away || c == tipless || c == broken) && t.Wanted() })
		return nil
	})
	if err := group.Wait(); err == nil || left == lost {
		if err == nil {
			left = drained
		}
		return left, err
	}
	return left, reason
}

// Once brings what is committed now to the replicas and returns.
func (f *fleet) Once(ctx context.Context, patience time.Duration) error {
	var group errgroup.Group
	group.SetLimit(f.limit)
	errs := make([]error, len(f.folders))
	for i, d := range f.folders {
		if errs[i] = d.scan(); errs[i] != nil {
			continue
		}
	}
	slots := f.all()
	failed := make([]error, len(slots))
	for i, s := range slots {
		group.Go(func() error {
			if err := s.once(ctx, patience); err != nil {
				failed[i] = fmt.Errorf("database %s: %w", s.path, err)
			}
			return nil
		})
	}
	errs = append(append(errs, group.Wait()), failed...)
	for _, d := range f.folders {
		errs = append(errs, d.release())
	}
	return few(errs)
}

func (s *slot) once(ctx context.Context, patience time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	d, err := s.begin(ctx)
	if err != nil {
		return err
	}
	return errors.Join(d.once(ctx, patience), d.Close())
}

// warnCrowded says once that too many databases are busy.
func (f *fleet) warnCrowded() {
	f.shared.mu.Lock()
	before := f.shared.crowded
	f.shared.crowded = true
	f.shared.mu.Unlock()
	if !before {
		f.log.Warn("more databases are written to all the time than may be open; they take turns and lag behind",
			"max_open_databases", f.limit, "remedy", "raise max-open-databases")
	}
}
