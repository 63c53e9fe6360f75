package compaction

import (
	"sync"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
)

// Clock knows the time by the clock of a bucket, as far as that is behind this
// machine's: by the file stored last, else by the newest one that was listed.
// What is deleted must be old by the clock that its age is told by. A clock here
// that is set meanwhile does not matter. The zero value knows nothing; one Clock
// serves all workers on a bucket.
type Clock struct {
	mu    sync.Mutex
	stamp time.Time // by the bucket's clock; zero: nothing is known
	at    time.Time // when that was, or a little later
}

// Note learns from a file that the bucket has just stamped; zero tells nothing.
func (c *Clock) Note(stamp time.Time) {
	if stamp.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = time.Now()
	c.stamp = earlier(stamp, c.at)
}

// seen learns from a listing that the bucket's clock is not behind the newest
// file.
func (c *Clock) seen(files []ltx.FileInfo) {
	var newest time.Time
	for _, f := range files {
		newest = later(newest, f.ModTime)
	}
	if newest.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	newest = earlier(newest, now)
	if c.stamp.IsZero() || newest.After(c.stamp.Add(now.Sub(c.at))) {
		c.stamp, c.at = newest, now
	}
}

// now is the time by the clock of the bucket, or earlier.
func (c *Clock) now() (now time.Time, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stamp.Add(time.Since(c.at)), !c.stamp.IsZero()
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
