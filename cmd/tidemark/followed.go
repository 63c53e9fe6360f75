package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/internal/loop"
	"github.com/tidemark-io/tidemark/leaser"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/replica/apply"
)

// standing is how the database of a node stands to its replica.
type standing int

const (
	unsettled standing = iota // not known yet
	absent                    // there is neither a database nor a replica
	fresh                     // there is a database without history, and no replica
	ahead                     // commits were never uploaded; the replica ends where they begin
	following                 // a copy of the replica
	inPlace                   // as the replica, but in use, so that it is no copy
)

// stateLook is how often it is looked whether the state directory is there.
const stateLook = time.Second

// errStateGone ends the following of a copy whose place nobody knows any more.
var errStateGone = errors.New("the state directory or its lock was removed")

// errAside ends the following of a copy that somebody else wrote to.
var errAside = errors.New("what the copy holds is to be set aside")

// followed is one database of a node that is not the primary, or not yet.
type followed struct {
	cfg    Database
	remote *remote // to read
	node   *node
	log    *slog.Logger
	first  chan struct{} // closed once it is known how the database stands, or that this fails
	once   sync.Once
	intruders

	mu sync.Mutex
	held
	err   error // why the last attempt ended; nil: it did not
	since time.Time

	refused refusal
}

// refusal is why a database could not be served when this node had the lease;
// zero: it could, or never was to be.
type refusal struct {
	err   error
	since time.Time
}

// intruders are other writers of a database that is to follow.
type intruders struct {
	touched chan struct{} // capacity 1: somebody else wrote to the copy
	aside   bool          // what is in the file is to be set aside before it is replaced
	kept    traces        // of the file that was set aside last
	gate    *shutGate     // before a database that cannot be made a copy yet
	between *shutGate     // after a term, until it is settled how the database stands
}

// held is what is open of a database, and how it stands.
type held struct {
	stands   standing
	lock     *capture.StateLock
	copy     *apply.Copy
	follower *replica.Follower
	tail     capture.Tail
}

func newFollowed(ctx context.Context, cfg Database, n *node) (*followed, error) {
	place, err := cfg.Replica.locate()
	if err != nil {
		return nil, err
	}
	log := n.log.With("db", cfg.Path)
	r, err := n.buckets.remote(ctx, place, log)
	if err != nil {
		return nil, err
	}
	return &followed{
		cfg: cfg, remote: r, node: n, log: log, first: make(chan struct{}), intruders: intruders{touched: make(chan struct{}, 1)},
	}, nil
}

// Follow keeps the copy warm until ctx ends, starting anew after errors. What
// is open then stays open for a promotion.
func (f *followed) Follow(ctx context.Context) error {
	return loop.Run(ctx, loop.Options{
		Name: "follow", Interval: f.node.cfg.HA.FollowInterval, MinBackoff: f.node.cfg.HA.FollowInterval,
		MaxBackoff: 15 * time.Second, Log: f.log,
	}, f.attempt)
}

func (f *followed) attempt(ctx context.Context) error {
	err := f.settle(ctx)
	f.note(ctx, err)
	if err != nil {
		return err
	}
	if f.standing() != following {
		return f.await(ctx)
	}
	err = f.run(ctx)
	switch {
	case errors.Is(err, errAside):
		f.aside = true
	case errors.Is(err, errStateGone):
		f.log.Warn("following anew", "reason", err)
	default:
		return err
	}
	return f.let() // and settle again
}

// keepsState tells whether the state directory is still there, with its lock.
func (f *followed) keepsState() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lock == nil || f.lock.Held()
}

// run follows until ctx ends, or somebody else writes to the copy.
func (f *followed) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	var group errgroup.Group
	group.Go(func() error {
		tick := time.NewTicker(stateLook)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-f.touched:
				stop(errAside)
			case <-tick.C:
				if !f.keepsState() {
					stop(errStateGone)
				}
			}
		}
	})
	group.Go(func() error { f.uploadSetAside(ctx); return nil })
	err := f.warm().Run(ctx)
	stop(nil)
	_ = group.Wait()
	return err
}

// await returns when the replica may be another one than it was: looked at as
// often as a copy would be.
func (f *followed) await(ctx context.Context) error {
	before, err := f.tip(ctx)
	for err == nil {
		timer := time.NewTimer(f.node.cfg.HA.FollowInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
		var now replica.Tip
		if now, err = f.tip(ctx); err == nil && now.Pos != before.Pos {
			return f.let()
		}
		f.note(ctx, err)
	}
	return err
}

// tip is where the replica ends; zero: there is none.
func (f *followed) tip(ctx context.Context) (replica.Tip, error) {
	tip, err := f.remote.replica.Tip(ctx)
	if errors.Is(err, replica.ErrNoBackup) {
		return replica.Tip{}, nil
	}
	return tip, err
}

// note keeps why an attempt failed, and since when; nil: it did not.
func (f *followed) note(ctx context.Context, err error) {
	if err != nil && ctx.Err() != nil {
		return
	}
	f.once.Do(func() { close(f.first) })
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil || err == nil {
		f.since = time.Now()
	}
	f.err = err
}

// refuse keeps why the database could not be served; nil: it could.
func (f *followed) refuse(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil:
		f.refused = refusal{}
	case f.refused.err == nil:
		f.refused = refusal{err, time.Now()}
	default:
		f.refused.err = err
	}
}

// refusal is what keeps the database from being served, unless another node
// serves it.
func (f *followed) refusal() refusal {
	if s := f.node.leaser.Status(); s.Generation == 0 && s.Holder.State == leaser.Held {
		return refusal{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refused
}

func (f *followed) standing() standing {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stands
}

// warm is the follower of the copy; nil: there is none.
func (f *followed) warm() *replica.Follower {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.follower
}

// let closes what is open and forgets how the database stands.
func (f *followed) let() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	if f.copy != nil {
		errs = append(errs, f.copy.Close())
	}
	if f.lock != nil {
		errs = append(errs, f.lock.Close())
	}
	f.held = held{}
	select {
	case <-f.touched: // it was about that copy
	default:
	}
	return errors.Join(errs...)
}

// Close gives the database free. Nothing may be under way.
func (f *followed) Close() error {
	err := errors.Join(f.gate.Open(), f.between.Open())
	f.gate, f.between = nil, nil
	if err = errors.Join(err, f.let()); err != nil {
		return fmt.Errorf("database %s: %w", f.cfg.Path, err)
	}
	return nil
}
