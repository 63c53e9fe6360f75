// Package leaser elects one primary among the processes that share a replica,
// by conditional writes of one small object. It decides who may write and until
// when; it must not know what is written.
package leaser

import (
	"context"
	"errors"
	"log/slog"
	"sync"
)

var (
	// ErrLost is wrapped when this process does not hold the lease any more, or
	// cannot prove that it does.
	ErrLost = errors.New("lease lost")
	// ErrStepDown is the cause that ends the context of a primary which is asked
	// to hand over.
	ErrStepDown = errors.New("asked to step down")
	// ErrNotPrimary is wrapped when a process that holds no lease is asked to
	// step down.
	ErrNotPrimary = errors.New("this process is not the primary")
	// ErrHeld is for processes without a lease that find one held.
	ErrHeld = errors.New("the lease is held")
)

// Options are the parts a Leaser may be given. The zero value does.
type Options struct {
	Log     *slog.Logger
	Metrics *Metrics
	Clock   Clock // nil: that of the machine
	// Floor returns the highest generation that the replica's files tell of. It
	// is asked for when the lock is not there or not readable, so that no
	// generation is used twice.
	Floor func(context.Context) (uint64, error)
}

// Roles is what a process does with and without the lease.
type Roles struct {
	// Standby runs while somebody else holds the lease, or nobody does. Its
	// context ends when this process has acquired it or Elect ends; it must
	// return then. When it fails it is run again after a pause.
	Standby func(context.Context) error
	// Primary runs after acquisition, while the lease is renewed. Its context
	// ends with the cause ErrLost or ErrStepDown. After ErrStepDown the lease is
	// renewed until Primary returns, but no longer than the deadline of the
	// configuration; Lease.WhileHeld tells. A return releases the lease; after
	// an error, or a step down, the process does not compete for a while.
	Primary func(context.Context, *Lease) error
}

// Leaser competes for the lease of one replica.
type Leaser struct {
	lock    lock
	node    *Node
	cfg     Config
	o       Options
	clock   Clock
	log     *slog.Logger
	metrics *Metrics
	wake    chan struct{} // the keeper looks at the protocol again

	mu       sync.Mutex
	protocol *protocol
	term     *Lease        // held now
	busy     bool          // a request is under way
	news     chan struct{} // closed and replaced when something has changed
	story    story
}

// await returns once done says so, which is asked with the mutex held after
// each change, or when ctx ends.
func (l *Leaser) await(ctx context.Context, done func() (bool, error)) error {
	for {
		l.mu.Lock()
		ok, err := done()
		news := l.news
		l.mu.Unlock()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-news:
		}
	}
}

// settle brings the term in line with the protocol and tells everybody. The
// mutex is held.
func (l *Leaser) settle() {
	now, held := l.clock.Now(), l.protocol.held
	if l.term != nil && (held == nil || held.record.Generation != l.term.generation) {
		l.term.end(l.protocol.lost)
		l.term = nil
	}
	if l.term == nil && held != nil {
		l.term = &Lease{l: l, generation: held.record.Generation, prior: held.prior}
	}
	if l.term != nil && held.record.Request != "" && held.record.Request != l.node.Name {
		l.term.leave(now, held.record.Request)
	}
	l.observe(now)
	close(l.news)
	l.news = make(chan struct{})
}

// compete lets the protocol take the lease, or not.
func (l *Leaser) compete(yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.protocol.want.compete = yes
	l.settle()
	l.prod()
}

// leave asks the holder of a term to end it.
func (l *Leaser) leave(term *Lease, successor string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == term {
		term.leave(l.clock.Now(), successor)
		l.prod()
	}
}
