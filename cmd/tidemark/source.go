package main

import (
	"context"
	"sync"
	"time"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/replica"
)

// source lets the uploader take from the spool, not more often than it is
// allowed to, and remembers how old the oldest waiting commit is.
type source struct {
	spool   *capture.Spool
	every   time.Duration // least time between two uploads; 0: none
	changed chan struct{}

	mu      sync.Mutex
	hurried int       // how many want no pauses now
	next    time.Time // not before
	oldest  time.Time // zero: nothing waits
}

// newSource makes a source that hands nothing out before a moment.
func newSource(spool *capture.Spool, every time.Duration, notBefore time.Time) *source {
	return &source{spool: spool, every: every, changed: make(chan struct{}, 1), next: notBefore}
}

// notBefore is when the next file may be handed out.
func (s *source) notBefore() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// Run passes on what the spool signals until ctx ends.
func (s *source) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.spool.Changed():
			s.wake()
		}
	}
}

// Next implements replica.Source.
func (s *source) Next() (replica.Pending, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if wait := time.Until(s.next); wait > 0 && s.hurried == 0 {
		if files, _ := s.spool.Size(); files > 0 {
			s.noteOldest(time.Now())
			time.AfterFunc(wait, s.wake)
		}
		return replica.Pending{}, false
	}
	file, ok := s.spool.Next()
	if !ok {
		s.oldest = time.Time{}
		return replica.Pending{}, false
	}
	s.noteOldest(file.Info.ModTime)
	return replica.Pending(file), true
}

// Done implements replica.Source.
func (s *source) Done(p replica.Pending) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oldest, s.next = time.Time{}, time.Now().Add(s.every)
	return s.spool.Done(capture.File(p))
}

// Changed implements replica.Source.
func (s *source) Changed() <-chan struct{} { return s.changed }

// hurry suspends the pauses between uploads until relax is called.
func (s *source) hurry() (relax func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hurried++
	s.wake()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hurried--
	}
}

// urge ends the pause before the next upload.
func (s *source) urge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = time.Time{}
	s.wake()
}

// lag is how long the oldest commit has waited; 0 when nothing waits.
func (s *source) lag() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.oldest.IsZero() {
		return 0
	}
	return max(0, time.Since(s.oldest))
}

func (s *source) noteOldest(t time.Time) {
	if s.oldest.IsZero() {
		s.oldest = t
	}
}

func (s *source) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}
