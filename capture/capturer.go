package capture

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/loop"
	"github.com/tidemark-io/tidemark/ltx"
)

// Capturer captures one database. Its methods are safe to call together.
type Capturer struct {
	path string
	cfg  Config
	opts Options

	wake    chan struct{}
	lock    *os.File
	mu      sync.Mutex // one step at a time; guards what follows
	st      *state
	cur     *cursor // nil while the database is not open
	plan    pace
	journal journal
	names   names
	last    recent // of the newest commit

	status    statusBox
	heldSince atomic.Pointer[time.Time] // since when writers have kept us from reading
}

// Options are the collaborators of a Capturer.
type Options struct {
	// Tip says what the replica proves. It is asked when the database is
	// opened, again and again until it gives an answer.
	Tip func(context.Context) (Tip, error)
	// History is asked when the database does not continue the replica; nil:
	// such a database is captured in full.
	History History
	Log     *slog.Logger
	Metrics *Metrics
	// Watcher reports file events; it must run. Nil: the Capturer has its own.
	Watcher *Watcher
	// Resume is what Park returned for the same database in this process. Tip
	// is not asked then, and nothing is compared where the files tell that
	// nothing but commits to the WAL happened since.
	Resume *Parked
	// NodeID goes into the header of each file; 0: no node is named.
	NodeID uint64
	// KeepUploaded has the spool keep files that are uploaded until its Confirm
	// is called. After a restart they are uploaded again, which finds them there.
	KeepUploaded bool
	// Holder is the lock that stands for the one of a parked database; nil:
	// parked databases have none.
	Holder *Holder
}

// New takes the state directory of the database at path, which need not exist
// yet, but its directory must. It wraps ErrLocked when another process has it.
// The caller closes the Capturer.
func New(path string, cfg Config, o Options) (*Capturer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	path, err := realPath(path)
	if err != nil {
		return nil, err
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	dir := StateDir(path)
	lock, err := lockState(dir, o.Holder)
	if err != nil {
		return nil, err
	}
	st, dropped, err := openState(dir)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	st.spool.node, st.spool.keep = o.NodeID, o.KeepUploaded
	c := &Capturer{path: path, cfg: cfg, opts: o, wake: make(chan struct{}, 1), lock: lock, st: st}
	c.warnDropped(dropped)
	c.status.set(func(s *Status) { s.State = StateWaiting; s.Pos = st.sums.Pos() })
	if p := o.Resume; p != nil && p.known && !st.sums.Interrupted() && st.sums.Pos() == p.tip.Pos {
		c.plan.settled, c.plan.resume = true, p
		st.spool.open()
	}
	return c, nil
}

// Spool returns the files that wait for upload.
func (c *Capturer) Spool() *Spool { return c.st.spool }

// Based tells whether the local state knows a full copy to be on the replica,
// which an earlier process may have uploaded.
func (c *Capturer) Based() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.position().IsZero() && !c.st.sums.Interrupted() && !c.st.spool.holdsBase()
}

// Run waits for the database to exist, opens it and captures until ctx ends.
// What it opened stays open, for a last Capture, until Close.
func (c *Capturer) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	w := c.opts.Watcher
	if w == nil {
		w = NewWatcher(c.opts.Log)
		g.Go(func() error { return w.Run(ctx) })
	}
	g.Go(func() error { return c.watch(ctx, w) })
	g.Go(func() error {
		return loop.Run(ctx, loop.Options{
			Name:       "capture",
			Interval:   c.cfg.PollInterval,
			Wake:       c.wake,
			MinBackoff: 50 * time.Millisecond,
			MaxBackoff: 5 * time.Second,
			Log:        c.opts.Log,
		}, c.follow)
	})
	return g.Wait()
}

// Capture brings everything committed so far into the spool. A database that
// does not exist yet is no error.
func (c *Capturer) Capture(ctx context.Context) error {
	return c.step(ctx, c.captureAll)
}

// follow is the step of Run: it leaves commits in the WAL while an upload is
// in flight, to gather.
func (c *Capturer) follow(ctx context.Context) error {
	start := time.Now()
	err := c.step(ctx, c.capturePaced)
	if c.heldUp(err) {
		rest(ctx, longestRest)
		signal(c.wake)
		return nil
	}
	c.restUnlessAwaited(ctx, time.Since(start))
	return err
}

func (c *Capturer) step(ctx context.Context, capture func(context.Context) error) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err = c.keepState()
	if err == nil {
		err = c.st.heal()
	}
	if err == nil {
		err = c.open(ctx)
	}
	if errors.Is(err, errAbsent) {
		c.status.set(func(s *Status) { s.State, s.LastError, s.FailingSince = StateWaiting, "", time.Time{} })
		return nil
	}
	if err == nil {
		err = c.guard(ctx, capture)
	}
	if err == nil || ctx.Err() == nil { // a step that was called off tells nothing
		c.report(err)
	}
	return err
}

// heldUp tells whether writers have kept the database from being read, for a
// time that is no failure yet.
func (c *Capturer) heldUp(err error) bool {
	if !errors.Is(err, errMoving) && !errors.Is(err, errExclusive) && !errors.Is(err, errHot) && !errors.Is(err, errApart) {
		c.heldSince.Store(nil)
		return false
	}
	now := time.Now()
	c.heldSince.CompareAndSwap(nil, &now)
	return c.heldFor() < patience
}

// heldFor is how long writers have kept the database from being read.
func (c *Capturer) heldFor() time.Duration {
	since := c.heldSince.Load()
	if since == nil {
		return 0
	}
	return time.Since(*since)
}

func (c *Capturer) report(err error) {
	if c.heldUp(err) {
		err = nil
	}
	err = errors.Join(err, c.journal.notice, c.names.notice)
	files, bytes := c.st.spool.Size()
	c.opts.Metrics.spoolBytes.Set(float64(bytes))
	c.status.set(func(s *Status) {
		s.Pos, s.SpoolFiles, s.SpoolBytes, s.LastError = c.st.sums.Pos(), files, bytes, ""
		if err == nil {
			s.State, s.FailingSince = StateCapturing, time.Time{}
			return
		}
		if s.FailingSince.IsZero() {
			s.FailingSince = time.Now()
		}
		s.State, s.LastError = StateFailing, err.Error()
	})
}

func (c *Capturer) reopen(ctx context.Context, reason string) error {
	file, err := present(c.path)
	if err != nil {
		return err
	}
	if err := c.learn(ctx); err != nil {
		return err
	}
	db, err := openDatabase(file)
	if err != nil {
		return err
	}
	c.cur = &cursor{db: db, held: -1}
	if err = c.attach(); err == nil && !db.still() {
		// Whoever writes to the file while it is read must be noticed after.
		_, err = c.cur.overwritten()
	}
	if err == nil {
		err = c.settle(ctx, reason)
	}
	if err != nil {
		err = errors.Join(err, c.shut())
	}
	return err
}

// Close closes the database, then the state. The spool's files stay.
func (c *Capturer) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.close()
}

func (c *Capturer) close() error {
	var err error
	if c.cur != nil {
		err = c.shut()
	}
	return errors.Join(err, c.st.close(), c.lock.Close())
}

// position returns where the local history ends.
func (c *Capturer) position() ltx.Pos { return c.st.sums.Pos() }
