package main

import (
	"context"
	"errors"
	"sync"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/ltx"
)

var errNoDatabase = errors.New("there is no database in the file yet")

// looks let any number of callers share one look at the database each time, so
// that none waits for the looks of others.
type looks struct {
	wanted chan struct{} // capacity 1

	mu    sync.Mutex
	next  *sighting
	moved chan struct{} // closed at the next upload; nil: nobody waits
}

// sighting is one capture of what is committed.
type sighting struct {
	done chan struct{} // closed when the rest is known
	pos  ltx.Pos
	err  error
}

func newLooks() *looks { return &looks{wanted: make(chan struct{}, 1)} }

// join returns the look that begins next.
func (l *looks) join() *sighting {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = &sighting{done: make(chan struct{})}
	}
	select {
	case l.wanted <- struct{}{}:
	default:
	}
	return l.next
}

func (l *looks) take() *sighting {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.next
	l.next = nil
	return next
}

// Run looks when it is wanted, until ctx ends.
func (l *looks) Run(ctx context.Context, p *parts) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.wanted:
		}
		look := l.take()
		if look == nil {
			continue
		}
		look.err = p.capturer.Capture(ctx)
		look.pos = p.capturer.Status().Pos
		close(look.done)
	}
}

// moves is closed at the next upload.
func (l *looks) moves() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.moved == nil {
		l.moved = make(chan struct{})
	}
	return l.moved
}

func (l *looks) move() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.moved != nil {
		close(l.moved)
		l.moved = nil
	}
}

// synced is how far a sync got.
type synced struct {
	Captured uint64 `json:"captured_txid"` // end of what was committed when it was asked; 0: not known
	Uploaded uint64 `json:"uploaded_txid"` // what is proven to be on the replica
	Complete bool   `json:"complete"`      // all that was committed is
}

// capture brings what is committed now into the spool and has it uploaded
// without a pause.
func (d *replicated) capture(ctx context.Context) (*parts, ltx.Pos, error) {
	p, err := d.ready(ctx)
	if err != nil {
		return nil, ltx.Pos{}, err
	}
	look := d.looks.join()
	select {
	case <-ctx.Done():
		return p, ltx.Pos{}, context.Cause(ctx)
	case <-look.done:
	}
	p.source.urge()
	if look.err == nil && p.capturer.Status().State == capture.StateWaiting {
		return p, look.pos, errNoDatabase
	}
	return p, look.pos, look.err
}

// sync captures what is committed now and waits until it is on the replica and,
// under a lease, confirmed. On an error, such as the end of ctx, it says how far
// it got.
func (d *replicated) sync(ctx context.Context) (synced, error) {
	s, err := d.reach(ctx)
	if err != nil || d.from.lease == nil {
		return s, err
	}
	return d.from.lease.prove(ctx, s)
}

func (d *replicated) reach(ctx context.Context) (s synced, err error) {
	p, pos, err := d.capture(ctx)
	if p == nil {
		return s, d.reason(err)
	}
	defer p.source.hurry()()
	s.Captured = uint64(pos.TXID)
	for {
		moved := d.looks.moves()
		s.Uploaded = uint64(d.uploaded(p).TXID)
		if err != nil {
			return s, d.reason(err)
		}
		files, _ := p.capturer.Spool().Size()
		if files == 0 && !p.uploader.Status().Pending || s.Uploaded >= s.Captured {
			s.Uploaded, s.Complete = max(s.Uploaded, s.Captured), true
			return s, nil
		}
		select {
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-moved:
		}
	}
}
