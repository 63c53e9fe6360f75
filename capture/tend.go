package capture

import (
	"context"
	"errors"
	"runtime"
	"time"
)

const (
	// restartBytes is the size of the WAL from which on a restart is sought:
	// SQLite's own default of a thousand pages.
	restartBytes = 4 << 20
	// quiet is how long nobody commits before everything is copied back.
	quiet = 300 * time.Millisecond
	// lockedAtMost bounds how long the write lock is held, but for the copying
	// that was begun before.
	lockedAtMost = 50 * time.Millisecond
	// tendFactor times the duration of one try passes before the next one.
	tendFactor = 5
	// forceAgain passes before the write lock is thought of again after another
	// reader stood in the way.
	forceAgain = time.Second
	// seekRounds is how often frames are copied back in one try.
	seekRounds = 6
)

// tend keeps the WAL short and the pin out of the way of others.
func (c *Capturer) tend(ctx context.Context) error {
	ih, err := c.cur.index()
	if err != nil {
		return err
	}
	size := int64(ih.MaxFrame) * int64(c.cur.db.pageSize)
	c.opts.Metrics.walFrames.Set(float64(ih.MaxFrame))
	if !c.cur.loose && ih.MaxFrame > 0 && ih.Backfilled == ih.MaxFrame {
		// A checkpoint of the application may wait for us, and hold up writers.
		if err := c.captureAll(ctx); err != nil {
			return err
		}
	}
	if err := c.stepAside(size); err != nil {
		return err
	}
	start := time.Now()
	calm := start.Sub(c.plan.lastSeen) >= quiet
	long := size >= max(restartBytes, c.st.spool.gatheringSize()/2) && !start.Before(c.plan.tendNext)
	// What is committed while the frames are copied back comes on top.
	over := c.cfg.WALLimit > 0 && size >= int64(c.cfg.WALLimit)*3/4 && !start.Before(c.plan.forceNext)
	if c.cur.loose && ih.Backfilled == ih.MaxFrame || !calm && !long && !over {
		return nil
	}
	done, err := c.seekRestart(ctx)
	if err == nil && !done && over {
		err = c.overLimit(ctx)
	}
	c.plan.tendNext = time.Now().Add(tendFactor * time.Since(start))
	return err
}

// stepAside moves the pin as far as it costs nobody anything: off the WAL when
// all of it is copied back, so that a checkpoint of the application can finish,
// and to the present while the WAL is short. In a long one it stays: the
// application tries a checkpoint after each commit then, which would copy and
// sync each time.
func (c *Capturer) stepAside(size int64) error {
	if !c.cur.loose {
		if done, err := c.cur.loosen(); done || err != nil {
			return err
		}
	}
	if size >= restartBytes*3/4 {
		return nil
	}
	return c.cur.follow()
}

// overLimit forces a restart unless another reader stands in its way: then the
// lock would stop the writers for nothing.
func (c *Capturer) overLimit(ctx context.Context) error {
	blocked, err := c.cur.blocked()
	if err == nil && !blocked {
		blocked, err = c.forceRestart(ctx)
	}
	if blocked {
		c.plan.forceNext = time.Now().Add(forceAgain)
	}
	return err
}

// seekRestart copies frames back until an instant comes in which nothing is
// left to copy, and lets the WAL restart then. Each round has less to copy than
// the one before, so below some hundred commits a second the instant comes.
func (c *Capturer) seekRestart(ctx context.Context) (done bool, err error) {
	for range seekRounds {
		if done, err = c.copyBack(ctx); done || err != nil {
			break
		}
	}
	return done, err
}

// copyBack copies back all frames that are committed now, and tells whether
// the WAL may restart.
func (c *Capturer) copyBack(ctx context.Context) (bool, error) {
	if err := c.captureAll(ctx); err != nil {
		return false, err
	}
	if err := c.cur.checkpoint(); err != nil {
		return false, err
	}
	c.opts.Metrics.checkpoints.Inc()
	return c.cur.loosen()
}

// forceRestart holds the write lock while the last frames are captured and
// copied back, and tells whether another reader prevented it. Not getting the
// lock is no error; it is tried again.
func (c *Capturer) forceRestart(ctx context.Context) (blocked bool, err error) {
	db := c.cur.db
	if db.locker == nil {
		if db.locker, err = openConn(db.path); err != nil {
			return false, err
		}
	}
	locked, err := tryLock(ctx, db.locker)
	if err != nil || !locked {
		return false, err
	}
	defer func() { err = errors.Join(err, db.locker.unlock()) }()
	c.opts.Metrics.locks.Inc()
	c.status.set(func(s *Status) { s.WriteLocks++ })
	start := time.Now()
	for {
		done, err := c.copyBack(ctx)
		if done || err != nil {
			return false, err
		}
		if blocked, err = c.cur.blocked(); blocked || err != nil || time.Since(start) > lockedAtMost {
			return blocked, err
		}
	}
}

// tryLock takes the write lock in a gap between two commits, holding nothing
// while it waits for one.
func tryLock(ctx context.Context, c *conn) (bool, error) {
	deadline := time.Now().Add(lockedAtMost)
	for {
		ok, err := c.lockWriters()
		if ok || err != nil || time.Now().After(deadline) || ctx.Err() != nil {
			return ok, err
		}
		runtime.Gosched()
	}
}
