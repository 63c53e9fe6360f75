package capture

import (
	"context"
	"time"

	"github.com/tidemark-io/tidemark/internal/filelock"
)

const (
	// wayAtMost is how long way is made in one step.
	wayAtMost = 50 * time.Millisecond
	wayPause  = 500 * time.Microsecond
)

// waits tells whether another process makes a FULL, RESTART or TRUNCATE
// checkpoint: it keeps writers out until it has copied everything back, or until
// nobody stands in the WAL. SQLite says nothing more of it through the files.
func (db *database) waits() (bool, error) {
	other, err := filelock.OfOtherProcesses(db.shm, filelock.Read, filelock.WALCheckpoint, 1)
	// One process's locks on bytes side by side are one lock.
	return other.Held && other.First <= filelock.WALWrite, err
}

// barred tells whether another process, which copies back, keeps readers from
// read mark 0. It does so for an instant after all is copied back; whoever
// begins then stands in the WAL although it need not.
func (db *database) barred() (bool, error) {
	other, err := filelock.OfOtherProcesses(db.shm, filelock.Read, filelock.WALReadMark0, 1)
	return other.Held, err
}

// makeWay moves the pin out of the way of a checkpoint of the application, first
// to the present, then off the WAL.
func (c *Capturer) makeWay(ctx context.Context) error {
	for deadline := time.Now().Add(wayAtMost); ; time.Sleep(wayPause) {
		waits, err := c.cur.db.waits()
		if err != nil || !waits {
			return err
		}
		if time.Now().After(deadline) {
			signal(c.wake)
			return nil
		}
		if err := c.captureAll(ctx); err != nil {
			return err
		}
		ih, err := c.cur.index()
		if err != nil {
			return err
		}
		if done, err := c.cur.loosen(); done || err != nil {
			return err
		}
		if err := c.cur.follow(ih); err != nil {
			return err
		}
	}
}

// lookPause is how often it is looked whether somebody waits while we rest.
const lookPause = 2 * time.Millisecond

// restUnlessAwaited rests after a step that took d, until a checkpoint of the
// application waits for us.
func (c *Capturer) restUnlessAwaited(ctx context.Context, d time.Duration) {
	look := time.NewTicker(lookPause)
	defer look.Stop()
	for end := time.Now().Add(min(restFactor*d, longestRest)); time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		c.mu.Lock()
		waits := false
		if c.cur != nil && !c.cur.db.still() && !c.cur.loose {
			waits, _ = c.cur.db.waits() // the next step returns the error
		}
		c.mu.Unlock()
		if waits {
			signal(c.wake)
			return
		}
	}
}
