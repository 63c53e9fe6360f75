package capture

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/tidemark-io/tidemark/wal"
)

const (
	// lockedAtMost is when the write lock is given back whatever is going on.
	lockedAtMost = 30 * time.Millisecond
	// lockWait bounds the search for a gap between two commits.
	lockWait = 50 * time.Millisecond
	// tailBytes of frames at most are left to be copied back under the lock, if
	// tailRounds are enough to get there.
	tailBytes  = 1 << 20
	tailRounds = 3
	// lockFactor times the duration of a lock that was of no use passes before
	// the next one.
	lockFactor = 5
	// lockAgain passes after another reader stood in the way.
	lockAgain = 200 * time.Millisecond
)

// crowded tells whether the WAL has to be restarted, under the write lock if
// need be. Where no quiet instant will come it begins early, since what is
// committed until it is done comes on top.
func (c *Capturer) crowded(size int64) bool {
	limit := int64(c.cfg.WALLimit)
	if c.plan.busy {
		limit /= 2
	}
	return limit > 0 && size >= limit
}

// watchSize says it once when the WAL grows well above its limit.
func (c *Capturer) watchSize(ih wal.IndexHeader) {
	limit := c.cfg.WALLimit
	if limit == 0 {
		limit = DefaultConfig().WALLimit
	}
	large := c.bytes(ih.MaxFrame) > int64(limit)*5/4
	switch {
	case !large:
		c.opts.Metrics.walOver.Set(0)
		c.plan.large = false
	case !c.plan.large:
		c.opts.Metrics.walOver.Set(1)
		c.plan.large = true
		why := "a reader of the application has stood in it for long, or the disk is slow; it is restarted as soon as that ends"
		if c.cfg.WALLimit == 0 {
			why = "wal-limit: 0 forbids to restart it under the write lock; it is restarted when its writers pause"
		}
		c.opts.Log.Warn("write-ahead log is large", "bytes", c.bytes(ih.MaxFrame), "why", why)
	}
}

// makeRoom restarts the WAL, under the write lock if there is no other way.
// All but the newest frames are captured, copied back and synced before. When
// another reader stands in the way the lock would stop the writers for nothing.
func (c *Capturer) makeRoom(ctx context.Context) error {
	before, err := c.cur.index()
	if err != nil {
		return err
	}
	done, err := c.seekRestart(ctx)
	for i := 0; i < tailRounds && !done && err == nil; i++ {
		var tail int64
		if tail, err = c.tail(); tail <= tailBytes || err != nil {
			break
		}
		done, err = c.seekRestart(ctx)
	}
	if done || err != nil {
		return err
	}
	after, err := c.cur.index()
	if err != nil {
		return err
	}
	if c.cur.ran && after.Backfilled == before.Backfilled && after.Salt1 == before.Salt1 {
		c.plan.lockNext = time.Now().Add(lockAgain)
		return nil
	}
	start := time.Now()
	done, err = c.forceRestart(ctx)
	if !done {
		c.plan.lockNext = time.Now().Add(lockFactor * time.Since(start))
	}
	return err
}

// tail returns how many bytes of frames are not copied back.
func (c *Capturer) tail() (int64, error) {
	ih, err := c.cur.index()
	return c.bytes(ih.MaxFrame - min(ih.MaxFrame, ih.Backfilled)), err
}

// forceRestart holds the write lock while the last frames are captured and
// copied back, and tells whether the WAL may restart. Not getting the lock is
// no error; it is tried again.
func (c *Capturer) forceRestart(ctx context.Context) (done bool, err error) {
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
	start := time.Now()
	unlock := sync.OnceValue(func() error {
		err := db.locker.unlock()
		took := time.Since(start)
		c.opts.Metrics.held.Observe(took.Seconds())
		c.opts.Log.Debug("held the write lock", "took", took)
		return err
	})
	// A sync that hangs must not hold up the writers: it does not need the lock.
	late := time.AfterFunc(lockedAtMost, func() { _ = unlock() })
	defer func() {
		late.Stop()
		err = errors.Join(err, unlock())
	}()
	c.opts.Metrics.locks.Inc()
	c.status.set(func(s *Status) { s.WriteLocks++ })
	for !done && err == nil && time.Since(start) < lockedAtMost {
		done, err = c.copyBack(ctx)
	}
	return done, err
}

// tryLock takes the write lock in a gap between two commits, holding nothing
// while it waits for one.
func tryLock(ctx context.Context, c *conn) (bool, error) {
	deadline := time.Now().Add(lockWait)
	for {
		ok, err := c.lockWriters()
		if ok || err != nil || time.Now().After(deadline) || ctx.Err() != nil {
			return ok, err
		}
		runtime.Gosched()
	}
}
