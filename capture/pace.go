package capture

import (
	"context"
	"time"

	"github.com/tidemark-io/tidemark/wal"
)

// How much is captured, and how often the WAL is tended.
const (
	segmentBytes    = 64 << 20 // most WAL bytes in one file, cut at a commit
	gatherBytes     = 1 << 20  // least WAL bytes worth rewriting the gathering file for
	restartBytes    = 1 << 20  // WAL size from which on a restart is sought
	tendInterval    = 20 * time.Millisecond
	quietCheckpoint = 500 * time.Millisecond
)

// pace is what decides how commits are cut into files.
type pace struct {
	settled  bool // the relation to the replica is known
	behind   bool // commits waited for an upload; they go into one file
	tended   time.Time
	lastSeen time.Time // when there were commits last
}

// captureAll captures all that is committed.
func (c *Capturer) captureAll(ctx context.Context) error {
	for ctx.Err() == nil {
		seg, err := c.cur.next(wal.Limit{Bytes: segmentBytes})
		if err != nil || seg.Commits == 0 {
			return err
		}
		if err := c.increment(seg); err != nil {
			return err
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
	frames, _, err := c.cur.backlog()
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

// tend keeps the WAL short: it moves the pin to the present and has frames
// copied back, so that SQLite can start the WAL over.
func (c *Capturer) tend() error {
	if err := c.cur.advance(); err != nil {
		return err
	}
	ih, err := c.cur.index()
	if err != nil {
		return err
	}
	open := ih.MaxFrame - min(ih.Backfilled, ih.MaxFrame)
	c.opts.Metrics.walFrames.Set(float64(open))
	now := time.Now()
	long := int64(ih.MaxFrame)*int64(c.cur.db.pageSize) >= restartBytes && now.Sub(c.plan.tended) >= tendInterval
	quiet := now.Sub(c.plan.lastSeen) >= quietCheckpoint
	if open == 0 || !long && !quiet {
		return nil
	}
	c.plan.tended = now
	c.opts.Metrics.checkpoints.Inc()
	if err := c.cur.checkpoint(); err != nil {
		return err
	}
	return c.cur.advance()
}
