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
	a.clear()
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// clear takes back what was set.
func (a *alarm) clear() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
	}
	a.at, a.timer = time.Time{}, nil
}
