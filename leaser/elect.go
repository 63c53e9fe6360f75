package leaser

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/loop"
	"github.com/tidemark-io/tidemark/storage"
)

// errAcquired ends a standby.
var errAcquired = errors.New("the lease was acquired")

// New prepares a competitor for the lease of the replica in b. Nothing happens
// before Elect. The bucket should send each request once: a repetition that is
// refused tells nothing about the first one.
func New(b storage.Bucket, n *Node, cfg Config, o Options) *Leaser {
	l := &Leaser{lock: lock{b}, node: n, cfg: cfg, o: o, clock: o.Clock, log: o.Log, metrics: o.Metrics}
	if l.clock == nil {
		l.clock = SystemClock{}
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	if l.metrics == nil {
		l.metrics = NewMetrics(nil)
	}
	l.wake, l.news = make(chan struct{}, 1), make(chan struct{})
	l.protocol = &protocol{
		cfg:   cfg,
		self:  self{name: n.Name, owner: n.Owner, boot: n.BootID, cluster: n.Cluster(), advertise: n.Advertise},
		luck:  luck{within: chance, nonce: newNonce},
		known: n.Generation(),
	}
	return l
}

// chance is a time from 0 to below d.
func chance(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}

// Elect competes for the lease and runs the roles until ctx ends, which is a
// step down: then it returns context.Cause(ctx) once the lease is released. It
// returns ErrCluster when this node can never have the lease. It runs once.
func (l *Leaser) Elect(ctx context.Context, r Roles) error {
	base, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer end()
		return l.alternate(groupCtx, r)
	})
	group.Go(func() error { return l.keep(base) })
	group.Go(func() error { return l.guard(base) })
	return group.Wait()
}

// alternate runs one role after the other.
func (l *Leaser) alternate(ctx context.Context, r Roles) error {
	for {
		term := l.standby(ctx, r.Standby)
		if term == nil {
			return context.Cause(ctx)
		}
		l.serve(ctx, term, r.Primary)
	}
}

// standby returns when the lease is held, or nil when ctx ends.
func (l *Leaser) standby(ctx context.Context, role func(context.Context) error) *Lease {
	l.compete(true)
	defer l.compete(false)
	standby, end := context.WithCancelCause(ctx)
	var group errgroup.Group
	group.Go(func() error {
		return loop.Run(standby, loop.Options{Name: "standby", Interval: time.Second, Log: l.log}, role)
	})
	term, err := l.acquired(ctx)
	end(errAcquired)
	_ = group.Wait() // why it ended is known
	if err == nil {
		return term
	}
	return l.late()
}

// acquired waits for a term.
func (l *Leaser) acquired(ctx context.Context) (term *Lease, err error) {
	err = l.await(ctx, func() (bool, error) {
		term = l.term
		return term != nil, nil
	})
	return term, err
}

// late waits for what is under way to end, so that a lease which was acquired
// at the last moment is released.
func (l *Leaser) late() (term *Lease) {
	l.compete(false)
	l.prod()
	_ = l.await(context.Background(), func() (bool, error) {
		term = l.term
		return term != nil || !l.busy, nil
	})
	return term
}

// serve runs the primary for one term.
func (l *Leaser) serve(ctx context.Context, term *Lease, role func(context.Context, *Lease) error) {
	primary, end := term.WhileHeld(context.WithoutCancel(ctx))
	defer end()
	primary, leave := context.WithCancelCause(primary)
	defer leave(nil)
	term.whenLeaving(func() { leave(ErrStepDown) })
	defer context.AfterFunc(ctx, func() { l.leave(term, "") })()
	l.log.Info("lease acquired", "generation", term.generation)
	err := role(primary, term)
	asked := errors.Is(context.Cause(primary), ErrStepDown)
	if err != nil && !asked && term.Check() == nil {
		l.log.Error("primary ended", "error", err)
	}
	l.release(term)
}

// release gives the lease up and waits until the lock says so, or may be.
func (l *Leaser) release(term *Lease) {
	l.mu.Lock()
	now := l.clock.Now()
	if l.term == term {
		l.protocol.stop(now)
		l.protocol.want.after = now.Boot + coolOff
	}
	l.settle()
	l.mu.Unlock()
	l.prod()
	// The keeper gives up after a while.
	_ = l.await(context.Background(), func() (bool, error) { return l.term != term, nil })
	if cause := term.cause(); cause != nil {
		l.log.Warn("lease lost", "generation", term.generation, "error", cause)
		return
	}
	l.log.Info("lease released", "generation", term.generation)
}
