// Package turns lets many take turns at few places: whoever has something to
// do waits in a line, works for as long as nobody else waits, then makes room
// and comes back later. Those that do nothing cost no goroutine. It must not
// know what is done in a turn.
package turns

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Work is what a Member does in its turns, one at a time.
type Work interface {
	// Turn works until ctx ends, until it has nothing to do for ever, or until
	// others wait (see Turn) and it is convenient to end.
	Turn(ctx context.Context, t *Turn) Next
}

// Next says when a Member wants its next turn. The zero value: when it is woken.
type Next struct {
	Again bool          // as soon as others had theirs
	After time.Duration // after a pause that no wake shortens
	// Until is the name of an outage that holds up all that name it: one of
	// them at a time tries again, after growing pauses, until Release.
	Until string
}

// Line is those that wait and those that have a turn.
type Line struct {
	places int
	signal chan struct{}

	mu       sync.Mutex
	waiting  []*Member          // in order
	running  map[*Turn]struct{} // at most places
	pausing  pauses
	holds    map[string]*hold
	crowded  time.Time // since when those that wait find no place; zero: they do
	wakeNext time.Time // when there is something to do that no signal tells of
}

// New returns a line with so many places.
func New(places int) *Line {
	return &Line{
		places: places, signal: make(chan struct{}, 1),
		running: map[*Turn]struct{}{}, holds: map[string]*hold{},
	}
}

// Run gives turns until ctx ends and returns its cause when all have ended.
func (l *Line) Run(ctx context.Context) error {
	var group errgroup.Group
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		for _, t := range l.step(time.Now()) {
			group.Go(func() error {
				l.end(t, t.member.work.Turn(ctx, t))
				return nil
			})
		}
		timer.Reset(l.untilNext())
		select {
		case <-ctx.Done():
		case <-l.signal:
		case <-timer.C:
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// step brings everybody to where they belong now and returns the turns that
// begin.
func (l *Line) step(now time.Time) (begin []*Turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeNext = time.Time{}
	for m := l.pausing.due(now); m != nil; m = l.pausing.due(now) {
		l.enqueue(m)
	}
	l.remind(l.pausing.first())
	for _, h := range l.holds {
		if m := h.due(now); m != nil {
			l.enqueue(m)
		}
		l.remind(h.at)
	}
	for len(l.waiting) > 0 && len(l.running) < l.places {
		m := l.waiting[0]
		l.waiting[0], l.waiting = nil, l.waiting[1:]
		t := &Turn{line: l, member: m, touched: now, wanted: make(chan struct{}, 1)}
		m.state, m.turn, m.woken = stateRunning, t, false
		l.running[t] = struct{}{}
		begin = append(begin, t)
	}
	l.makeRoom(now)
	return begin
}

// remind makes Run look again at a moment.
func (l *Line) remind(at time.Time) {
	if !at.IsZero() && (l.wakeNext.IsZero() || at.Before(l.wakeNext)) {
		l.wakeNext = at
	}
}

// untilNext is how long Run may sleep unless it is signaled.
func (l *Line) untilNext() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wakeNext.IsZero() {
		return time.Hour
	}
	return time.Until(l.wakeNext)
}

func (l *Line) enqueue(m *Member) {
	m.state = stateWaiting
	l.waiting = append(l.waiting, m)
}

// end takes a member from its place to where it waits for the next turn.
func (l *Line) end(t *Turn, next Next) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, t)
	m, now := t.member, time.Now()
	m.turn = nil
	tried := m.hold
	m.hold = nil
	switch {
	case next.Until != "":
		h := l.hold(next.Until)
		h.add(m, now, h == tried)
		tried = nil
	case next.After > 0:
		m.state = statePausing
		l.pausing.add(m, now.Add(next.After))
	case next.Again || m.woken:
		l.enqueue(m)
	default:
		m.state = stateIdle
	}
	if tried != nil { // it found out nothing
		tried.at = now
	}
	l.wake()
}

func (l *Line) hold(name string) *hold {
	h := l.holds[name]
	if h == nil {
		h = &hold{pause: firstProbe}
		l.holds[name] = h
	}
	return h
}

// Release ends the outage of a name: all that it holds up wait for a turn.
func (l *Line) Release(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.holds[name]
	if h == nil {
		return
	}
	delete(l.holds, name)
	for _, m := range h.members {
		l.enqueue(m)
	}
	l.wake()
}

// Held tells whether an outage of that name lasts.
func (l *Line) Held(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holds[name] != nil
}

// Rush ends all pauses and outages: everybody waits for a turn now.
func (l *Line) Rush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.holds {
		for _, m := range h.members {
			l.enqueue(m)
		}
	}
	clear(l.holds)
	for _, p := range l.pausing {
		l.enqueue(p.member)
	}
	l.pausing = nil
	l.wake()
}

// wake makes Run look.
func (l *Line) wake() {
	select {
	case l.signal <- struct{}{}:
	default:
	}
}
