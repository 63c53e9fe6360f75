package replica

import (
	"context"
	"sync"
)

// Gate stands between those of this process who read files of a replica and
// the one who deletes some: a deletion waits until no read runs, and reads
// that come meanwhile go ahead of it; while it runs, reads wait. So a long
// read delays deletions, never other reads. The zero value is open.
type Gate struct {
	mu       sync.Mutex
	reads    int
	deleting bool
	changed  chan struct{} // closed at the next change; nil: nobody waits
}

// Read waits until nothing is being deleted and returns what ends the read.
func (g *Gate) Read(ctx context.Context) (done func(), err error) {
	if err := g.enter(ctx, func() bool { return !g.deleting }, func() { g.reads++ }); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { g.leave(func() { g.reads-- }) }), nil
}

// Delete waits until nothing reads or deletes and returns what ends the
// deletion.
func (g *Gate) Delete(ctx context.Context) (done func(), err error) {
	if err := g.enter(ctx, func() bool { return !g.deleting && g.reads == 0 }, func() { g.deleting = true }); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { g.leave(func() { g.deleting = false }) }), nil
}

// enter takes a place as soon as it is free.
func (g *Gate) enter(ctx context.Context, free func() bool, take func()) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		changed, ok := g.try(free, take)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// try takes a place, or returns what is closed when it may be free.
func (g *Gate) try(free func() bool, take func()) (<-chan struct{}, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if free() {
		take()
		return nil, true
	}
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return g.changed, false
}

func (g *Gate) leave(give func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	give()
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}
