package capture

import (
	"context"
	"time"

	"github.com/tidemark-io/tidemark/wal"
)

const (
	segmentBytes = 64 << 20 // most WAL bytes in one file, cut at a commit
	gatherBytes  = 1 << 20  // least WAL bytes worth rewriting the gathering file for

	// A step is followed by a pause of so many times its duration, at most
	// longestRest: a writer at full speed must not share its processor with us,
	// and its commits gather meanwhile.
	restFactor  = 4
	longestRest = 20 * time.Millisecond
)

// pace is what decides how commits are cut into files.
type pace struct {
	settled  bool      // the relation to the replica is known
	tip      *Tip      // what the replica proves, until settled
	resume   *Parked   // where to go on when the database is opened first
	behind   bool      // commits waited for an upload; they go into one file
	lastSeen time.Time // when there were commits last
	tendNext time.Time // when the WAL may be tended again
	// forceNext is when the write lock may be taken again.
	forceNext time.Time
}

// rest pauses after a step that took d.
func rest(ctx context.Context, d time.Duration) {
	over := time.NewTimer(min(restFactor*d, longestRest))
	defer over.Stop()
	select {
	case <-ctx.Done():
	case <-over.C:
	}
}

// captureAll captures all that is committed when it is called; what follows it
// does not run after.
func (c *Capturer) captureAll(ctx context.Context) error {
	end, err := c.cur.index()
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		seg, err := c.cur.next(wal.Limit{Bytes: segmentBytes})
		if err != nil || seg.Commits == 0 {
			return err
		}
		if err := c.increment(seg); err != nil {
			return err
		}
		if c.cur.at(end.Salt1, end.Salt2, end.MaxFrame) {
			return nil
		}
	}
	return context.Cause(ctx)
}

// capturePaced captures one commit a file while nothing waits for upload.
// While something does, commits stay in the WAL until it is done or until they
// are worth rewriting the file that gathers behind it.
func (c *Capturer) capturePaced(ctx context.Context) error {
	for ctx.Err() == nil {
		limit, ok, err := c.limit()
		if err != nil || !ok {
			return err
		}
		seg, err := c.cur.next(limit)
		if err != nil || seg.Commits == 0 {
			return err
		}
		if err := c.increment(seg); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// limit says how much of the WAL goes into the next file, if any.
func (c *Capturer) limit() (wal.Limit, bool, error) {
	frames, err := c.cur.backlog()
	if err != nil || frames == 0 {
		return wal.Limit{}, false, err
	}
	c.plan.lastSeen = time.Now()
	limit := wal.Limit{Bytes: segmentBytes}
	if waiting, _ := c.st.spool.Size(); waiting > 0 {
		c.plan.behind = true
		backlog := int64(frames) * int64(c.cur.db.pageSize)
		return limit, backlog >= max(gatherBytes, c.st.spool.gatheringSize()/2), nil
	}
	if !c.plan.behind {
		limit.Commits = 1
	}
	c.plan.behind = false
	return limit, true, nil
}
