package capture

import (
	"context"
	"time"

	"github.com/tidemark-io/tidemark/wal"
)

const (
	// restartBytes is the size of the WAL above which SQLite by its defaults
	// tries to copy back after each commit: a thousand pages.
	restartBytes = 4 << 20
	// seekBytes is the size of the WAL from which on a restart is sought.
	seekBytes = restartBytes / 2
	// quiet is how long nobody commits before everything is copied back.
	quiet = 300 * time.Millisecond
	// tendFactor times the duration of one try passes before the next one, as
	// long as the WAL is not longer than restartBytes.
	tendFactor = 5
	// seekRounds is how often frames are copied back in one try.
	seekRounds = 6
	// So many commits in one round, at so many a second, leave no hope for none
	// in the next.
	manyCommits = 5
	fastCommits = 1000
	// syncBytes of frames are worth a sync of their own, so that there is little
	// left to sync when it matters.
	syncBytes = 1 << 20
	// busyBytes of frames are copied back at once where commits come fast.
	busyBytes = 4 << 20
)

// tend keeps the WAL short and the pin out of the way of others.
func (c *Capturer) tend(ctx context.Context) error {
	ih, err := c.cur.index()
	if err != nil {
		return err
	}
	copied := ih.Backfilled == ih.MaxFrame
	c.opts.Metrics.walFrames.Set(float64(ih.MaxFrame))
	c.watchSize(ih)
	if copied && c.cur.loose {
		return nil
	}
	if err := c.makeWay(ctx); err != nil {
		return err
	}
	if copied && ih.MaxFrame > 0 {
		// A checkpoint of the application may wait for us, and hold up writers.
		if err := c.captureAll(ctx); err != nil {
			return err
		}
		if done, err := c.cur.loosen(); done || err != nil {
			return err
		}
	}
	if err := c.stepAside(); err != nil {
		return err
	}
	if c.bytes(ih.MaxFrame-min(ih.MaxFrame, c.cur.synced(ih))) >= syncBytes {
		if err := c.cur.sync(); err != nil {
			return err
		}
	}
	return c.shorten(ctx, ih)
}

// bytes returns the size of so many frames.
func (c *Capturer) bytes(frames uint32) int64 { return int64(frames) * int64(c.cur.db.pageSize) }

// shorten does what the size of the WAL and the pace of the writers call for.
func (c *Capturer) shorten(ctx context.Context, ih wal.IndexHeader) (err error) {
	start := time.Now()
	size := c.bytes(ih.MaxFrame)
	switch {
	case start.Sub(c.plan.lastSeen) >= quiet:
		_, err = c.seekRestart(ctx)
	case c.crowded(size) && !start.Before(c.plan.lockNext):
		err = c.makeRoom(ctx)
	case c.plan.busy && c.bytes(ih.MaxFrame-ih.Backfilled) >= busyBytes:
		_, err = c.copyBack(ctx)
	case !c.plan.busy && size >= max(seekBytes, c.st.spool.gatheringSize()/2) && !start.Before(c.plan.tendNext):
		_, err = c.seekRestart(ctx)
	default:
		return nil
	}
	c.plan.tendNext = start
	if size < restartBytes {
		c.plan.tendNext = time.Now().Add(tendFactor * time.Since(start))
	}
	return err
}

// stepAside moves the pin to the present while the WAL is short, so that a
// checkpoint of the application can copy everything back. In a long one it
// stays: the application tries a checkpoint after each commit then, which would
// copy and sync each time.
func (c *Capturer) stepAside() error {
	ih, err := c.cur.index()
	if err != nil || c.bytes(ih.MaxFrame) >= restartBytes*3/4 {
		return err
	}
	return c.cur.follow(ih)
}

// seekRestart copies frames back until an instant comes in which nothing is
// left to copy, and lets the WAL restart then. Each round has less to copy and
// to sync than the one before, so below some hundred commits a second the
// instant comes; above, one round is enough to leave little to copy.
func (c *Capturer) seekRestart(ctx context.Context) (done bool, err error) {
	for range seekRounds {
		start := time.Now()
		before, err := c.cur.index()
		if err != nil {
			return false, err
		}
		if err := c.cur.sync(); err != nil {
			return false, err
		}
		if done, err := c.copyBack(ctx); done || err != nil {
			return done, err
		}
		after, err := c.cur.index()
		if err != nil {
			return false, err
		}
		n := after.Change - before.Change
		c.plan.busy = n >= manyCommits && float64(n) > fastCommits*time.Since(start).Seconds()
		if c.plan.busy {
			break
		}
	}
	return false, nil
}

// copyBack copies back all frames that are committed now, and tells whether
// the WAL may restart.
func (c *Capturer) copyBack(ctx context.Context) (bool, error) {
	capture := c.catchUp
	if c.plan.busy {
		capture = c.captureAll
	}
	if err := capture(ctx); err != nil {
		return false, err
	}
	if err := c.cur.checkpoint(); err != nil {
		return false, err
	}
	c.opts.Metrics.checkpoints.Inc()
	return c.cur.loosen()
}
