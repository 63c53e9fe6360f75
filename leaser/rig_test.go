package leaser_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/leaser"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

// clock is that of the test's bubble, as one machine sees it.
type clock struct {
	mu   sync.Mutex
	boot time.Duration // ahead of the bubble's
	wall time.Duration
}

func (c *clock) Now() leaser.Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now().Round(0)
	return leaser.Reading{Boot: time.Duration(now.Unix())*time.Second + time.Duration(now.Nanosecond()) + c.boot, Wall: now.Add(c.wall)}
}

func (c *clock) shift(boot, wall time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boot += boot
	c.wall += wall
}

// machine is one node with a way of its own to the bucket.
type machine struct {
	*leaser.Leaser
	t      *testing.T
	name   string
	dir    string
	node   *leaser.Node
	bucket *storagetest.Faulty
	clock  *clock
	floor  func(context.Context) (uint64, error)
	log    *slog.Logger

	end  context.CancelFunc
	done errgroup.Group

	mu      sync.Mutex
	events  []event
	lease   *leaser.Lease
	work    func(context.Context, *leaser.Lease) error
	elected error
}

// event is something that happened to a machine.
type event struct {
	what string // standby, primary, or the cause of its end
	at   time.Time
}

func newBucket(t *testing.T) storage.Bucket {
	t.Helper()
	d, err := storage.NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// prepare makes a machine that does not compete yet.
func prepare(t *testing.T, b storage.Bucket, name string) *machine {
	t.Helper()
	return inDirectory(t, b, name, filepath.Join(t.TempDir(), name))
}

func inDirectory(t *testing.T, b storage.Bucket, name, dir string) *machine {
	t.Helper()
	node, err := leaser.OpenNode(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, name: name, dir: dir, node: node, bucket: storagetest.NewFaulty(b), clock: &clock{}}
	m.work = func(ctx context.Context, lease *leaser.Lease) error {
		if err := lease.Serving(ctx); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}
	return m
}

func (m *machine) start() *machine { return m.startWith(leaser.DefaultConfig()) }

// startWith lets the machine compete until the test, or stop, ends it.
func (m *machine) startWith(cfg leaser.Config) *machine {
	m.t.Helper()
	m.Leaser = leaser.New(m.bucket, m.node, cfg, leaser.Options{Clock: m.clock, Floor: m.floor, Log: m.log})
	ctx, end := context.WithCancel(context.Background())
	m.end = end
	m.done.Go(func() error {
		err := m.Elect(ctx, leaser.Roles{Standby: m.standby, Primary: m.primary})
		m.mu.Lock()
		defer m.mu.Unlock()
		m.elected = err
		return err
	})
	return m
}

// stop ends the process in good order.
func (m *machine) stop() error {
	m.end()
	err := m.done.Wait()
	return errors.Join(err, m.node.Close())
}

// kill ends the process as far as the bucket can tell.
func (m *machine) kill() {
	m.bucket.Inject(storagetest.Fault{Effect: storagetest.Hang})
	_ = m.stop()
}

func (m *machine) standby(ctx context.Context) error {
	m.happens("standby")
	<-ctx.Done()
	return nil
}

func (m *machine) primary(ctx context.Context, lease *leaser.Lease) error {
	m.mu.Lock()
	m.lease = lease
	work := m.work
	m.mu.Unlock()
	m.happens("primary")
	err := work(ctx, lease)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, leaser.ErrLost):
		m.happens("lost")
	case errors.Is(cause, leaser.ErrStepDown):
		m.happens("left")
	default:
		m.happens("ended")
	}
	return err
}

func (m *machine) happens(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, event{what, time.Now()})
}

// when returns the time of the last event of a kind; zero: there was none.
func (m *machine) when(what string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := len(m.events) - 1; i >= 0; i-- {
		if m.events[i].what == what {
			return m.events[i].at
		}
	}
	return time.Time{}
}

func (m *machine) count(what string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.events {
		if e.what == what {
			n++
		}
	}
	return n
}

func (m *machine) term() *leaser.Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lease
}

// is fails the test when the machine has another role.
func (m *machine) is(want leaser.Role) {
	m.t.Helper()
	if got := m.Status(); got.Role != want {
		m.t.Fatalf("%s is %s, want %s: %+v", m.name, got.Role, want, got)
	}
}

// pass lets time go by, and everything that is due happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// lock returns the lock as it is in the bucket.
func lock(t *testing.T, b storage.Bucket) leaser.Record {
	t.Helper()
	r, _, err := leaser.Read(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// bubble runs a test of machines with a bucket of their own.
func bubble(t *testing.T, test func(t *testing.T, b storage.Bucket)) {
	t.Helper()
	b := newBucket(t)
	synctest.Test(t, func(t *testing.T) { test(t, b) })
}

// stopAll ends machines at the end of a test.
func stopAll(machines ...*machine) {
	for _, m := range machines {
		m.bucket.Heal()
		_ = m.stop()
	}
}

func between(t *testing.T, what string, got, low, high time.Duration) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s: %v, want %v to %v", what, got, low, high)
	}
}

func describe(r leaser.Record) string {
	return fmt.Sprintf("%s g%d seq %d %s", r.Owner, r.Generation, r.Seq, r.State)
}
