package leaser

import (
	"fmt"
	"time"
)

// longPause is how long a process that looks at its clocks all the time may
// take to do so before it counts as one that stood still.
const longPause = 3 * wakeful

// pauseOf is a time in which this process did nothing, or a clock that was set.
type pauseOf struct {
	what string
	took time.Duration
}

func (p pauseOf) noted() bool { return p.took > 0 }

// woke notes how long the process did not run, once it looks at its clocks.
func (s *story) woke(now Reading) {
	last := s.awake
	if last == (Reading{}) {
		return
	}
	s.awake = now
	switch boot, wall := now.Boot-last.Boot, now.Wall.Sub(last.Wall); {
	case boot > longPause:
		s.still = pauseOf{"this process stood still", boot}
	case wall > longPause:
		s.still = pauseOf{"the clock of this machine was set ahead", wall}
	}
}

// Hindered notes why Elect has not begun, until it reads the lock: Status and
// the log tell it. With nil nothing stands in its way any more.
func (l *Leaser) Hindered(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.story.failed = why
	l.observe(l.clock.Now())
}

// outage tells whether the lock cannot be read, or the lease not renewed, for a
// while.
func (l *Leaser) outage(now Reading) bool { return l.degraded(now) || l.story.role == CutOff }

// why is what went wrong with the lock; there is always something in an outage.
func (l *Leaser) why(now Reading) error {
	s := &l.story
	switch {
	case s.failed != nil:
		return s.failed
	case !l.outage(now):
		return nil
	case s.still.noted():
		return fmt.Errorf("%s for %s; the lock was not read since", s.still.what, s.still.took.Round(time.Millisecond))
	case s.heard == (Reading{}):
		return fmt.Errorf("the lock was not read for %s since the start", now.since(s.begun).Round(time.Second))
	}
	return fmt.Errorf("no answer about the lock for %s", now.since(s.heard).Round(time.Second))
}
