package compaction

import (
	"sync"
	"time"
)

// alarm wakes a loop at the earliest time it was set to. Without one it costs
// nothing.
type alarm struct {
	wake chan struct{} // capacity 1

	mu    sync.Mutex
	at    time.Time // zero: not set
	timer *time.Timer
	busy  bool // the loop has something to do, or failed at it
}

func newAlarm() *alarm { return &alarm{wake: make(chan struct{}, 1)} }

// set lets it ring at t, if it would not ring earlier. A zero t changes
// nothing.
func (a *alarm) set(t time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.IsZero() || !a.at.IsZero() && !t.Before(a.at) {
		return
	}
	a.at = t
	if a.timer != nil {
		a.timer.Stop()
	}
	a.timer = time.AfterFunc(time.Until(t), a.ring)
}

// ring wakes the loop now.
func (a *alarm) ring() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stop()
	a.busy = true
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// begin says that a loop starts, whose first step comes without being woken.
func (a *alarm) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy = true
}

// done says that the loop has done what it was woken for.
func (a *alarm) done() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy = len(a.wake) > 0
}

// idle tells that the loop neither has anything to do nor will have, unless
// something is told.
func (a *alarm) idle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.busy && a.at.IsZero()
}

// next is when it rings: now, if it has rung and was not heard; zero: never.
func (a *alarm) next() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at.IsZero() && len(a.wake) > 0 {
		return time.Now()
	}
	return a.at
}

// clear takes back what was set.
func (a *alarm) clear() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stop()
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
	a.at, a.timer = time.Time{}, nil
}
