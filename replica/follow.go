package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tidemark-io/tidemark/internal/loop"
	"github.com/tidemark-io/tidemark/internal/scratch"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica/apply"
)

const (
	defaultFollowInterval = time.Second
	mostFollowPause       = 5 * time.Second // between attempts that fail
)

// FollowOptions adjusts a Follower; zero fields mean the defaults, but Scratch
// is needed.
type FollowOptions struct {
	Interval time.Duration  // between two looks at an idle replica, default 1 s
	Scratch  *scratch.Space // for what is downloaded before it is applied
	Log      *slog.Logger   // default: that of the replica
	Gate     *Gate          // reads of the replica enter it; nil: none
	// Foreign, if not nil, is called when the copy holds what the replica has
	// never held, because somebody else wrote to it, before that is replaced: it
	// may set the file aside. It may be called again. While it fails, and without
	// it, nothing is replaced: the error stays in the status until Reseed.
	Foreign func(ctx context.Context, found error) error
	// Applied, if not nil, is called with each position the copy has reached,
	// from the following goroutine; it must not block.
	Applied func(Tip)
}

// FollowStatus is the state of a Follower.
type FollowStatus struct {
	Pos        ltx.Pos   // of the copy
	At         time.Time // when that was committed; zero: not known
	Newest     ltx.TXID  // that the replica was seen to hold
	LastPoll   time.Time // when the replica was last looked at with success
	Current    time.Time // when the copy last was seen to hold everything
	Waiting    time.Time // for readers of the copy, since when; zero: not
	LastError  error     // of the outage that lasts; nil: none
	ErrorSince time.Time
	Reseeds    int64 // how often pages were compared with a whole state
}

// Lag returns how old the newest state may be that the copy does not hold;
// negative: it has never held everything.
func (s FollowStatus) Lag(now time.Time) time.Duration {
	if s.Current.IsZero() {
		return -1
	}
	return now.Sub(s.Current)
}

// Follower keeps a copy at the newest state of a replica.
type Follower struct {
	replica *Replica
	copy    *apply.Copy
	opts    FollowOptions
	turn    chan struct{} // capacity 1: held while a step runs
	seen    seen          // of the turn's holder, like the next
	unheld  ltx.Checksum  // of a copy that the replica has never held

	mu     sync.Mutex
	status FollowStatus
}

// NewFollower returns a follower that has not started. The copy stays its
// caller's, who closes it after Run.
func NewFollower(r *Replica, c *apply.Copy, o FollowOptions) *Follower {
	if o.Interval <= 0 {
		o.Interval = defaultFollowInterval
	}
	if o.Log == nil {
		o.Log = r.log
	}
	if o.Gate == nil {
		o.Gate = &Gate{}
	}
	return &Follower{replica: r, copy: c, opts: o, turn: make(chan struct{}, 1)}
}

// Run follows until ctx ends and returns its cause. An idle look at the replica
// is one listing that begins at the newest file known. What goes wrong is in the
// status, logged once, and tried again.
func (f *Follower) Run(ctx context.Context) error {
	return loop.Run(ctx, loop.Options{
		Name: "follow", Interval: f.opts.Interval, Log: f.opts.Log,
		MinBackoff: f.opts.Interval, MaxBackoff: max(f.opts.Interval, mostFollowPause),
	}, f.poll)
}

// CatchUp brings the copy to the newest state over all levels, once, and
// returns it with the checksum that the copy has there. ErrNoBackup: the
// replica is empty.
func (f *Follower) CatchUp(ctx context.Context) (Tip, error) {
	var tip Tip
	err := f.step(ctx, func() (err error) {
		tip, err = f.drain(ctx)
		return err
	})
	if err != nil {
		return Tip{}, fmt.Errorf("catch up with %s: %w", f.replica, err)
	}
	return tip, nil
}

// poll looks whether there is anything new, and applies it.
func (f *Follower) poll(ctx context.Context) error {
	return f.step(ctx, func() error { return f.look(ctx) })
}

// Status returns the state now.
func (f *Follower) Status() FollowStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.status
	s.Pos, s.Waiting = f.copy.Pos(), f.copy.Waiting()
	return s
}

// step runs one step, alone, and keeps what came of it.
func (f *Follower) step(ctx context.Context, do func() error) error {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := f.mended(ctx, do)
	if err != nil && ctx.Err() != nil {
		return err
	}
	f.note(func(s *FollowStatus) {
		switch {
		case err == nil:
			s.LastError, s.ErrorSince = nil, time.Time{}
		case s.LastError == nil:
			s.ErrorSince = time.Now()
			fallthrough
		default:
			s.LastError = err
		}
	})
	return err
}

// mended runs a step, and again after what somebody else wrote to the copy was
// taken for what it is.
func (f *Follower) mended(ctx context.Context, do func() error) error {
	err := do()
	if !errors.Is(err, apply.ErrForeign) || f.copy.Pos().TXID == 0 {
		return err
	}
	f.opts.Log.Warn("somebody else wrote to the copy", "copy", f.copy.Path(), "error", err)
	if adoptErr := f.adopt(ctx); adoptErr != nil {
		return errors.Join(err, adoptErr)
	}
	return do()
}

func (f *Follower) note(change func(*FollowStatus)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.status)
}

// reached notes a position of the copy.
func (f *Follower) reached(tip Tip) {
	f.note(func(s *FollowStatus) { s.At, s.Newest = tip.At, max(s.Newest, tip.Pos.TXID) })
	if f.opts.Applied != nil {
		f.opts.Applied(tip)
	}
}

// current notes that the copy holds what the replica held when it was looked at.
func (f *Follower) current(looked time.Time) {
	f.note(func(s *FollowStatus) { s.LastPoll, s.Current = looked, looked })
}
