package leaser

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Lease is one term of this process as the holder. All methods may be called by
// several goroutines, and after the term is over.
type Lease struct {
	l          *Leaser
	generation uint64
	prior      Record

	// Guarded by the mutex of l.
	over      bool
	ended     error // why; nil: released in good order
	serving   bool
	leaving   bool
	heads     func() map[string]Head
	onLeave   []func()
	whenEnded map[int]context.CancelCauseFunc
	nextEnded int
}

// Generation is the number of the term. No other term, of whatever process, has
// the same.
func (t *Lease) Generation() uint64 { return t.generation }

// Prior is the lock as it was before this term; zero: there was none. Its heads
// are what was confirmed before, and must be in the replica.
func (t *Lease) Prior() Record { return t.prior }

// Check returns nil while this process may write, and wraps ErrLost from then
// on.
func (t *Lease) Check() error {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	return t.check()
}

// check is Check with the mutex held.
func (t *Lease) check() error {
	switch {
	case t.over && t.ended == nil:
		return fmt.Errorf("%w: generation %d was released", ErrLost, t.generation)
	case t.over:
		return fmt.Errorf("%w: generation %d: %w", ErrLost, t.generation, t.ended)
	case t.l.protocol.remaining(t.l.clock.Now()) == 0:
		return fmt.Errorf("%w: generation %d: its time is over", ErrLost, t.generation)
	}
	return nil
}

// cause is why the term ended otherwise than by a release.
func (t *Lease) cause() error {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	return t.ended
}

// Remaining is the time for which this process may write if it is not renewed.
func (t *Lease) Remaining() time.Duration {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	if t.over {
		return 0
	}
	return t.l.protocol.remaining(t.l.clock.Now())
}

// Confirm returns nil when a renewal that was sent after the call has
// succeeded: nobody else had the lease until then, so what was uploaded before
// the call is part of the replica. All who wait share one renewal. It wraps
// ErrLost.
func (t *Lease) Confirm(ctx context.Context) error {
	t.l.mu.Lock()
	number := t.l.protocol.number
	if held := t.l.protocol.held; held != nil && !t.over {
		held.wanted = max(held.wanted, number)
	}
	t.l.mu.Unlock()
	t.l.prod()
	return t.l.await(ctx, func() (bool, error) {
		if err := t.check(); err != nil {
			return false, err
		}
		return t.l.protocol.held.confirmed > number, nil
	})
}

// Heads sets what is asked at each write of the lock for the confirmed end of
// each database; that of an only database has no name. It must not block, and
// is called from another goroutine. Until it tells something, the lock keeps
// the heads of the holder before.
func (t *Lease) Heads(confirmed func() map[string]Head) {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	t.heads = confirmed
}

// Serving ends the promotion: with one more renewal, in which the lock takes
// over the heads. When it returns nil, the application may be let write. It
// wraps ErrLost.
func (t *Lease) Serving(ctx context.Context) error {
	if only, ok := t.l.heads()[""]; ok {
		t.l.fence(t, only.TXID)
	}
	if err := t.Confirm(ctx); err != nil {
		return err
	}
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	if err := t.check(); err != nil {
		return err
	}
	t.serving = true
	t.l.settle()
	return nil
}

// fence puts the first TXID of a term into the lock, with the next renewal.
func (l *Leaser) fence(t *Lease, txid uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == t {
		l.protocol.held.fence = formatTXID(txid)
	}
}

// WhileHeld is ctx, but ends with a cause that wraps ErrLost when the term does.
// For work that goes on after the context of Primary has ended, as the last
// uploads of a step down do, give it context.WithoutCancel of that.
func (t *Lease) WhileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	held, cancel := context.WithCancelCause(ctx)
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	if err := t.check(); err != nil {
		cancel(err)
		return held, func() {}
	}
	if t.whenEnded == nil {
		t.whenEnded = map[int]context.CancelCauseFunc{}
	}
	id := t.nextEnded
	t.nextEnded++
	t.whenEnded[id] = cancel
	return held, func() {
		cancel(nil)
		t.l.mu.Lock()
		defer t.l.mu.Unlock()
		delete(t.whenEnded, id)
	}
}

// end makes the term one that is over. The mutex is held.
func (t *Lease) end(why error) {
	t.over, t.ended = true, why
	t.l.metrics.term(why)
	for _, cancel := range t.whenEnded {
		cancel(t.check())
	}
	t.whenEnded = nil
}

// leave asks Primary to end, once. The mutex is held.
func (t *Lease) leave(now Reading, successor string) {
	if t.leaving || t.over {
		return
	}
	t.leaving = true
	t.l.protocol.leave(now, successor)
	for _, f := range t.onLeave {
		f()
	}
}

// whenLeaving calls f, which must not block, when Primary is to end.
func (t *Lease) whenLeaving(f func()) {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	if t.leaving {
		f()
		return
	}
	t.onLeave = append(t.onLeave, f)
}

// StepDown asks the Primary of this process to end, and returns when the lease
// is released: for the node successor, if there is one. It wraps ErrNotPrimary,
// and ErrLost when the lease ended in another way.
func (l *Leaser) StepDown(ctx context.Context, successor string) error {
	if successor == l.node.Name {
		return errors.New("step down: a node cannot succeed itself")
	}
	l.mu.Lock()
	term := l.term
	l.mu.Unlock()
	if term == nil {
		return fmt.Errorf("step down: %w", ErrNotPrimary)
	}
	l.leave(term, successor)
	if err := l.await(ctx, func() (bool, error) { return l.term != term, nil }); err != nil {
		return fmt.Errorf("step down: %w", err)
	}
	if cause := term.cause(); cause != nil {
		return fmt.Errorf("step down: %w: %w", ErrLost, cause)
	}
	return nil
}

// Promote asks the holder, through the lock, to hand over to this node, and
// returns when this node serves. A holder that is gone is succeeded after the
// wait, as ever.
func (l *Leaser) Promote(ctx context.Context) error {
	l.mu.Lock()
	l.protocol.want.ask, l.protocol.want.after = true, 0
	l.story.unasked = nil
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.protocol.want.ask = false
	}()
	l.prod()
	err := l.await(ctx, func() (bool, error) { return l.term != nil && l.term.serving && !l.term.leaving, nil })
	if err != nil {
		return fmt.Errorf("promote: %w: %s", err, l.obstacle())
	}
	return nil
}

// obstacle says why this process does not serve, as far as it knows.
func (l *Leaser) obstacle() string {
	s := l.Status()
	l.mu.Lock()
	unasked := l.story.unasked
	l.mu.Unlock()
	name := s.Holder.Node()
	switch {
	case s.Generation > 0 && s.Leaving:
		return "this node is handing over"
	case s.Generation > 0:
		return "this node has the lease, and does not serve yet"
	case s.LastError != "" && (unasked == nil || s.LastError != unasked.Error()):
		return s.LastError
	case s.Holder.State == Released || s.Holder.Generation == 0:
		return "nobody has the lease"
	case s.Holder.State == Handoff:
		return "the lease is for node " + s.Holder.Successor
	case s.Holder.Request != "":
		return "node " + name + " has the lease and was asked to hand over to node " + s.Holder.Request
	case unasked != nil:
		return fmt.Sprintf("node %s has the lease, and could not be asked to hand over: %v", name, unasked)
	}
	return "node " + name + " has the lease"
}
