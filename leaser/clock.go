package leaser

import "time"

// Reading is what the clocks of a machine say at one moment.
type Reading struct {
	Boot time.Duration // counts time while the machine sleeps too, and is never set
	Wall time.Time     // may be set, forward and back
}

// Clock reads the clocks of a machine.
type Clock interface {
	Now() Reading
}

// SystemClock is the Clock of this machine.
type SystemClock struct{}

// Now reads the clock that goes on while the machine sleeps, and the wall clock.
func (SystemClock) Now() Reading {
	return Reading{Boot: bootTime(), Wall: time.Now().Round(0)}
}

// since is the time from one reading to the next: what either clock says, the
// longer. A wall clock that was set back says nothing; one that is ahead may be
// the only sign that a machine was restored from a snapshot.
func (r Reading) since(earlier Reading) time.Duration {
	return max(r.Boot-earlier.Boot, r.Wall.Sub(earlier.Wall))
}
