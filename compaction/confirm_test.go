package compaction_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

// witness is asked for confirmation, and may refuse it.
type witness struct {
	*working
	calls  atomic.Int32
	refuse error
}

func (c *witness) confirm(context.Context) error {
	c.calls.Add(1)
	return c.refuse
}

func newWitness(t *testing.T, change func(*compaction.Options)) *witness {
	c := &witness{working: newWorking(t, change)}
	c.options.Confirm = c.confirm
	c.restart()
	return c
}

// changes counts what was stored and deleted by the worker.
func (c *witness) changes() int {
	return len(c.list(1, 2, 3)) + len(c.list(9)) + c.bucket.Calls(storagetest.Delete)
}

func TestNothingIsStoredOrDeletedWithoutConfirmation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newWitness(t, nil)
		c.refuse = errors.New("the lease is lost")
		c.write(1)
		before := c.changes()
		c.run(func() { c.commits(200) })
		if n := c.changes() - before; n != 0 || c.calls.Load() < 3 {
			t.Errorf("%d changes after %d calls that refused", n, c.calls.Load())
		}
		if !strings.Contains(c.log.String(), "the lease is lost") {
			t.Errorf("logged %s", c.log.String())
		}
		c.refuse = nil
		c.run(func() { <-time.After(time.Hour); c.commits(1); <-time.After(time.Hour) })
		if got := c.list(0, 1, 2, 3, 9); len(got) > 3 {
			t.Errorf("left are %s", names(got))
		}
		c.restored(0)
	})
}

func TestAHoleIsNotFilledWithoutConfirmation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refills := 0
		c := newWitness(t, noSnapshots)
		c.options.Refill = func(context.Context, compaction.Hole) error { refills++; return nil }
		c.refuse = errors.New("the lease is lost")
		c.commits(8)
		c.remove(c.list(0)[3])
		c.restart()
		c.run(func() { <-time.After(time.Minute) })
		if refills != 0 || len(c.list(9)) != 1 {
			t.Errorf("filled %d times, snapshots are %s", refills, names(c.list(9)))
		}
	})
}

func TestAnIdleReplicaNeedsNoConfirmation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newWitness(t, nil)
		c.write(1)
		c.run(func() {
			c.commits(30)
			<-time.After(time.Hour)
			calls := c.calls.Load()
			<-time.After(100 * time.Hour)
			if c.calls.Load() != calls || calls == 0 {
				t.Errorf("confirmed %d times while idle, %d before", c.calls.Load()-calls, calls)
			}
		})
		c.restored(0)
	})
}
