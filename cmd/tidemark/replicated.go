package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/internal/loop"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
)

// replicated is one database on its way to its replica.
type replicated struct {
	cfg    Database
	remote *remote
	log    *slog.Logger
	signs
	use sync.RWMutex // held to read while parts work, to write to close them

	mu          sync.Mutex
	parts       *parts
	err         error     // why the last attempt to run ended
	since       time.Time // when that began
	stopCapture context.CancelFunc
	stopping    bool

	from origin
}

// signs are what others wait for, or give.
type signs struct {
	opened   chan struct{} // closed once parts are there
	answered chan struct{} // closed once the replica answered
	looks    *looks
}

// origin is what a database shares with others and what is known of it from
// before; zero: nothing.
type origin struct {
	watcher   *capture.Watcher
	workshop  *workshop          // nil: somebody else compacts the replica
	shelf     *compaction.Shelf  // of whoever compacts; nil: the workshop's, or none
	uploaded  func(ltx.FileInfo) // called for each file where there is no workshop; may be nil
	asked     func(replica.Tip)  // called when the replica said where it ends; may be nil
	holder    *capture.Holder
	resume    *capture.Parked
	notBefore time.Time                         // of the next upload
	lease     *leased                           // nil: none
	succeeded func(outagesThatEnd ...condition) // called when the bucket did what it should
	tipFails  atomic.Bool
}

// parts are what a database needs to run.
type parts struct {
	capturer *capture.Capturer
	source   *source
	uploader *replica.Uploader
	worker   *keeper // nil: somebody else compacts
	closed   bool    // guarded by replicated.mu
}

// newReplicated starts nothing and sends nothing, but finds settings that can
// never work.
func newReplicated(ctx context.Context, cfg Database, b *buckets, log *slog.Logger) (*replicated, error) {
	place, err := cfg.Replica.locate()
	if err != nil {
		return nil, err
	}
	log = log.With("db", cfg.Path)
	r, err := b.remote(ctx, place, log)
	if err != nil {
		return nil, err
	}
	return &replicated{
		cfg: cfg, remote: r, log: log,
		signs: signs{opened: make(chan struct{}), answered: make(chan struct{}), looks: newLooks()}, stopCapture: func() {},
	}, nil
}

// logged is a bucket as the log shows it.
func logged(b storage.Bucket) any {
	if v, ok := b.(slog.LogValuer); ok {
		return v
	}
	return b.String()
}

// Run replicates until ctx ends, starting anew after errors. It returns the
// cause of ctx's end or an error that wraps replica.ErrFenced.
func (d *replicated) Run(ctx context.Context) error {
	return loop.Run(ctx, loop.Options{
		Name: "replicate", MinBackoff: 500 * time.Millisecond, MaxBackoff: 15 * time.Second, Log: d.log,
	}, d.attempt)
}

func (d *replicated) attempt(ctx context.Context) error {
	err := d.open(ctx)
	if err == nil {
		err = d.work(ctx)
	}
	fenced := isFenced(err)
	if fenced { // nobody may hold up the application's WAL for nothing
		err = errors.Join(err, d.Close())
	}
	if fenced || ctx.Err() == nil {
		d.note(err)
	}
	if fenced {
		return loop.Fatal(fmt.Errorf("database %s: %w", d.cfg.Path, err))
	}
	return err
}

// work captures and uploads until ctx ends or the replica is fenced.
func (d *replicated) work(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	captureCtx, stop := context.WithCancel(ctx)
	d.mu.Lock()
	p, stopping := d.parts, d.stopping
	d.stopCapture, d.err = stop, nil
	d.mu.Unlock()
	if stopping {
		stop()
	}
	untilStop := func(run func(context.Context) error) func() error {
		return func() error {
			err := run(captureCtx)
			if ctx.Err() == nil && captureCtx.Err() != nil && !isFenced(err) {
				return nil // only capturing was to end
			}
			return err
		}
	}
	group.Go(untilStop(func(ctx context.Context) error {
		defer stop()
		return p.capturer.Run(ctx)
	}))
	group.Go(untilStop(func(ctx context.Context) error { return d.compact(ctx, p) }))
	group.Go(untilStop(func(ctx context.Context) error { return d.looks.Run(ctx, p) }))
	if d.from.lease != nil {
		group.Go(untilStop(func(ctx context.Context) error { return d.from.lease.Run(ctx, p.capturer.Spool()) }))
	}
	group.Go(func() error { return p.source.Run(ctx) })
	group.Go(func() error { return p.uploader.Run(ctx) })
	return group.Wait()
}

// Protected waits until a full copy of the database is on the replica. While
// the bucket cannot be reached, the local state is believed that an earlier
// run uploaded it, so that an application starts again. Run must be running. A
// database that does not exist has nothing to wait for.
func (d *replicated) Protected(ctx context.Context) error {
	p, err := d.ready(ctx)
	if err != nil {
		return err
	}
	if err := p.capturer.Capture(ctx); err != nil && ctx.Err() == nil && p.capturer.Based() {
		d.log.Warn("the replica was not asked, but has a full copy from an earlier run", "error", err)
	}
	if p.capturer.Based() {
		return nil
	}
	return d.drain(ctx)
}

// ready waits for the parts.
func (d *replicated) ready(ctx context.Context) (*parts, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-d.opened:
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.parts, nil
}

// Finish ends capturing with a last look at the database and waits until what
// it found is on the replica. Run must be running; ctx is the deadline.
func (d *replicated) Finish(ctx context.Context) error {
	d.mu.Lock()
	d.stopping = true
	d.stopCapture()
	p, fenced := d.parts, isFenced(d.err)
	d.mu.Unlock()
	if fenced {
		return nil // Run returns that error
	}
	if p == nil && (d.from.lease != nil || !exists(d.cfg.Path)) {
		return nil
	}
	_, err := d.ready(ctx)
	if err == nil {
		err = d.drain(ctx)
	}
	if err == nil {
		return nil
	}
	if isFenced(err) {
		return fmt.Errorf("database %s: %w", d.cfg.Path, err)
	}
	return fmt.Errorf("database %s: the last commit is not on %s: %w", d.cfg.Path, d.remote.place, d.reason(err))
}

// Close gives the database and its state free. Only Report may be called then.
func (d *replicated) Close() error {
	d.use.Lock()
	defer d.use.Unlock()
	d.mu.Lock()
	p := d.parts
	done := p == nil || p.closed
	if !done {
		p.closed = true
	}
	d.mu.Unlock()
	if done {
		return nil
	}
	return p.capturer.Close()
}
