package compaction

import (
	"sync"
	"time"
)

// Clock knows how far the clock of a bucket is behind that of this machine, by
// the file stored last. What is deleted must be old by the clock that its age is
// told by. The zero value knows nothing; one Clock serves all workers on a
// bucket.
type Clock struct {
	mu    sync.Mutex
	lead  time.Duration // of this clock before that of the bucket
	known bool
}

// Note learns from a file that the bucket has just stamped; zero tells nothing.
func (c *Clock) Note(stamp time.Time) {
	if stamp.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lead, c.known = max(0, time.Since(stamp)), true
}

// now is the time by the clock of the bucket, as far as that is behind.
func (c *Clock) now() (now time.Time, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(-c.lead), c.known
}
