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
	// seekRounds is how often frames are copied back in one try.
	seekRounds = 6
)

// tend keeps the WAL short. The pin is left where it is while the WAL is
// short: moving it would make the application's own checkpoint, which it tries
// after every commit once the WAL is long, copy and sync each time.
func (c *Capturer) tend(ctx context.Context) error {
	ih, err := c.cur.index()
	if err != nil {
		return err
	}
	size := int64(ih.MaxFrame) * int64(c.cur.db.pageSize)
	c.opts.Metrics.walFrames.Set(float64(ih.MaxFrame))
	long := size >= max(restartBytes, c.st.spool.gatheringSize()/2)
	// What is committed while the frames are copied back comes on top.
	over := c.cfg.WALLimit > 0 && size >= int64(c.cfg.WALLimit)*3/4
	start := time.Now()
	calm := start.Sub(c.plan.lastSeen) >= quiet
	if c.cur.loose && ih.Backfilled == ih.MaxFrame || !calm && !over && (!long || start.Before(c.plan.tendNext)) {
		return nil
	}
	done, err := c.seekRestart(ctx)
	if err == nil && !done && over {
		err = c.forceRestart(ctx)
	}
	c.plan.tendNext = time.Now().Add(tendFactor * time.Since(start))
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
// copied back. Failing to is no error; it is tried again.
func (c *Capturer) forceRestart(ctx context.Context) (err error) {
	db := c.cur.db
	if db.locker == nil {
		if db.locker, err = openConn(db.path); err != nil {
			return err
		}
	}
	locked, err := tryLock(ctx, db.locker)
	if err != nil || !locked {
		return err
	}
	defer func() { err = errors.Join(err, db.locker.unlock()) }()
	c.opts.Metrics.locks.Inc()
	c.status.set(func(s *Status) { s.WriteLocks++ })
	start := time.Now()
	for {
		done, err := c.copyBack(ctx)
		if done || err != nil || time.Since(start) > lockedAtMost {
			c.opts.Log.Debug("held the write lock to let the WAL restart", "duration", time.Since(start).String(), "restarted", done)
			return err
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
