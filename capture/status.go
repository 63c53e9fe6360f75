package capture

import (
	"sync"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
)

// States of a Capturer.
const (
	StateWaiting   = "waiting"   // there is no database yet
	StateCapturing = "capturing" // all is well
	StateFailing   = "failing"   // LastError says why; it is tried again
)

// Status is a picture of a Capturer.
type Status struct {
	State      string
	Pos        ltx.Pos   // end of what is captured
	CapturedAt time.Time // when the newest file was added to the spool
	SpoolFiles int
	SpoolBytes int64
	Resyncs    int // comparisons of the whole database
	WriteLocks int // times the write lock was held
	LastError  string
	// FailingSince is when the failures began that last; zero: all is well.
	FailingSince time.Time
}

type statusBox struct {
	mu sync.Mutex
	s  Status
}

func (b *statusBox) set(change func(*Status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.s)
}

// Status returns the present state; it never waits for a step.
func (c *Capturer) Status() Status {
	c.status.mu.Lock()
	defer c.status.mu.Unlock()
	return c.status.s
}
