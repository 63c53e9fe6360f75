//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/leaser"
	"github.com/tidemark-io/tidemark/s3"
	"github.com/tidemark-io/tidemark/storage"
)

// lockBucket is a bucket that sends each request once.
func lockBucket(t *testing.T, url string) storage.Bucket {
	t.Helper()
	for _, setting := range testbucket.Env() {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
	}
	config, err := s3.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	config.Retry = s3.Retry{Attempts: 1}
	b, err := s3.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// candidates compete until the test ends them.
type candidates struct {
	t       *testing.T
	now     atomic.Int32 // primaries
	most    atomic.Int32 // primaries at once
	terms   atomic.Int32
	lost    atomic.Int32
	leasers []*leaser.Leaser
	group   errgroup.Group
	end     context.CancelFunc
}

// compete starts n candidates at once.
func compete(t *testing.T, b storage.Bucket, n int, cfg leaser.Config) *candidates {
	t.Helper()
	c := &candidates{t: t}
	ctx, end := context.WithCancel(context.Background())
	c.end = end
	start := make(chan struct{})
	for i := range n {
		name := fmt.Sprint("node", i)
		node, err := leaser.OpenNode(filepath.Join(t.TempDir(), name), name)
		if err != nil {
			t.Fatal(err)
		}
		l := leaser.New(b, node, cfg, leaser.Options{})
		c.leasers = append(c.leasers, l)
		c.group.Go(func() error {
			<-start
			err := l.Elect(ctx, leaser.Roles{Standby: func(ctx context.Context) error { <-ctx.Done(); return nil }, Primary: c.primary})
			if errors.Is(err, context.Canceled) {
				err = nil
			}
			return errors.Join(err, node.Close())
		})
	}
	close(start)
	t.Cleanup(end)
	return c
}

func (c *candidates) primary(ctx context.Context, lease *leaser.Lease) error {
	if err := lease.Serving(ctx); err != nil {
		return err
	}
	c.terms.Add(1)
	at := c.now.Add(1)
	defer c.now.Add(-1)
	for most := c.most.Load(); at > most && !c.most.CompareAndSwap(most, at); most = c.most.Load() {
	}
	<-ctx.Done()
	if errors.Is(context.Cause(ctx), leaser.ErrLost) {
		c.lost.Add(1)
	}
	return nil
}

// stop ends all, and fails the test when two were primaries at once.
func (c *candidates) stop() {
	c.t.Helper()
	c.end()
	if err := c.group.Wait(); err != nil {
		c.t.Error(err)
	}
	if c.most.Load() != 1 {
		c.t.Errorf("%d primaries at once", c.most.Load())
	}
}

func (c *candidates) leader() *leaser.Leaser {
	for _, l := range c.leasers {
		if l.Status().Role == leaser.Primary {
			return l
		}
	}
	return nil
}

func TestOneOfManyCandidatesHasTheLease(t *testing.T) {
	b := lockBucket(t, testbucket.Gateway(t).URL("lease"))
	c := compete(t, b, 32, leaser.DefaultConfig())
	const terms = 3
	for want := int32(1); want <= terms; want++ {
		eventually(t, time.Minute, func() bool { return c.terms.Load() == want && c.leader() != nil })
		if want < terms {
			if err := c.leader().StepDown(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.stop()
	if r, _, err := leaser.Read(t.Context(), b); err != nil || r.Generation != terms || r.State != leaser.Released {
		t.Errorf("the lock is %+v, %v", r, err)
	}
}

func TestALeaseOutlivesLostReplies(t *testing.T) {
	gateway := testbucket.Gateway(t)
	p := testbucket.NewProxy(t, gateway.Endpoint())
	b := lockBucket(t, gateway.URL("lease"))
	p.LoseReplies(1) // of the acquisition
	c := compete(t, lockBucket(t, p.URL("lease")), 1, leaser.Config{TTL: 6 * time.Second}.WithDefaults())
	eventually(t, time.Minute, func() bool { return c.terms.Load() == 1 })
	holder, _, err := leaser.Read(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	for _, spoil := range []func(){
		func() { p.LoseReplies(1) },
		func() { p.StatusNext(1, 503) },
		func() { p.StatusNext(1, 409) },
		func() { p.DropNext(1) },
	} {
		before := holder.Seq
		spoil()
		eventually(t, time.Minute, func() bool {
			now, _, err := leaser.Read(t.Context(), b)
			if err == nil {
				holder = now
			}
			return err == nil && now.Seq > before+1
		})
	}
	p.Heal()
	if c.terms.Load() != 1 || c.lost.Load() != 0 || holder.Generation != 1 {
		t.Errorf("%d terms, %d lost, generation %d: want one term", c.terms.Load(), c.lost.Load(), holder.Generation)
	}
	c.stop()
}

// eventually polls until done, or fails the test.
func eventually(t *testing.T, limit time.Duration, done func() bool) {
	t.Helper()
	deadline := time.After(limit)
	for tick := time.NewTicker(20 * time.Millisecond); !done(); {
		select {
		case <-deadline:
			t.Fatal("too slow")
		case <-tick.C:
		}
	}
}
