package capture

import (
	"context"
	"time"

	"github.com/tidemark-io/tidemark/wal"
)

const (
	segmentBytes = 64 << 20 // most WAL bytes in one file, cut at a commit
	gatherBytes  = 1 << 20  // least WAL bytes worth rewriting the gathering file for

	// catchUpRounds bounds how often what was committed meanwhile is captured.
	catchUpRounds = 4

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
	doubt    doubt     // why all must be compared; empty: nothing
	behind   bool      // commits waited for an upload; they go into one file
	lastSeen time.Time // when there were commits last
	tendNext time.Time // when a restart of the WAL may be sought again
	lockNext time.Time // when the write lock may be taken again
	busy     bool      // commits come too fast for a quiet instant
	large    bool      // it was said that the WAL is above its limit
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
	return c.captureBy(ctx, func() (wal.Limit, bool, error) { return wal.Limit{Bytes: segmentBytes}, true, nil })
}

// catchUp captures until nothing is left, unless writers are as fast.
func (c *Capturer) catchUp(ctx context.Context) error {
	for range catchUpRounds {
		if err := c.captureAll(ctx); err != nil {
			return err
		}
		if ih, err := c.cur.index(); err != nil || c.cur.backlog(ih) == 0 {
			return err
		}
	}
	return nil
}

// capturePaced captures one commit a file while nothing waits for upload.
// While something does, commits stay in the WAL until it is done or until they
// are worth rewriting the file that gathers behind it.
func (c *Capturer) capturePaced(ctx context.Context) error {
	if err := c.stepAside(); err != nil {
		return err
	}
	return c.captureBy(ctx, c.limit)
}

// captureBy captures up to what is committed now, in files that limit bounds,
// until it says that this is all for now. Writers that are faster than capture
// do not hold it back from what else is to be done.
func (c *Capturer) captureBy(ctx context.Context, limit func() (wal.Limit, bool, error)) error {
	end, err := c.cur.index()
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		l, ok, err := limit()
		if err != nil || !ok {
			return err
		}
		seg, err := c.cur.next(l)
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

// limit says how much of the WAL goes into the next file, if any.
func (c *Capturer) limit() (wal.Limit, bool, error) {
	ih, err := c.cur.index()
	if err != nil {
		return wal.Limit{}, false, err
	}
	frames := c.cur.backlog(ih)
	if frames == 0 {
		return wal.Limit{}, false, nil
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
