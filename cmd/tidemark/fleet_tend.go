package main

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

// tender looks after the replicas of a fleet, whether the databases are open or
// parked: merging and deleting need none, and for a snapshot one is opened. One
// that has nothing due costs a time in a queue, or not even that.
type tender struct {
	fleet    *fleet
	workshop *workshop
	wake     chan struct{} // capacity 1

	mu      sync.Mutex
	visits  map[*slot]*visit
	queue   appointments
	running int
	warned  time.Time // when it was last logged that a database fails
}

// visit is when a replica is looked after next, and what was found the last
// time.
type visit struct {
	tender   *tender
	slot     *slot
	due      time.Time // zero: nothing is due
	place    int       // in the queue
	worker   *keeper   // of the visit that is going on; nil: none is
	guests   guests
	last     compaction.Status
	failures int
	told     bool // it was logged that it fails
}

const (
	// firstWithin is how long after its first turn a database is looked after.
	firstWithin = time.Minute
	// mostSpread is how far visits are spread that would all come at a full hour.
	mostSpread = time.Hour
	// longestRetry is the longest pause after a visit that failed.
	longestRetry = 30 * time.Minute
)

func newTender(f *fleet, w *workshop) *tender {
	return &tender{fleet: f, workshop: w, wake: make(chan struct{}, 1), visits: map[*slot]*visit{}}
}

// Run visits until ctx ends or all end.
func (t *tender) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group errgroup.Group
	for {
		wait := time.NewTimer(time.Until(t.start(func(v *visit) {
			group.Go(func() error { v.do(ctx); return nil })
		})))
		select {
		case <-ctx.Done():
		case <-t.fleet.ending:
			cancel()
		case <-t.wake:
		case <-wait.C:
		}
		wait.Stop()
		if ctx.Err() != nil {
			return group.Wait()
		}
	}
}

// start begins the visits that are due, few at a time, and says when to look
// again.
func (t *tender) start(begin func(*visit)) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.queue) > 0 && t.running < 2*t.workshop.places {
		v := t.queue[0]
		if time.Until(v.due) > 0 {
			return v.due
		}
		heap.Pop(&t.queue)
		v.due = time.Time{}
		t.running++
		begin(v)
	}
	return time.Now().Add(time.Hour)
}

// of returns the visit of a database. The caller holds mu.
func (t *tender) of(s *slot) *visit {
	v := t.visits[s]
	if v == nil {
		v = &visit{tender: t, slot: s, place: -1}
		t.visits[s] = v
	}
	return v
}

// plan lets a database be visited at a time, if not before. The caller holds
// mu.
func (t *tender) plan(v *visit, at time.Time) {
	if at.IsZero() || !v.due.IsZero() && !at.Before(v.due) {
		return
	}
	v.due = at
	switch {
	case v.place >= 0:
		heap.Fix(&t.queue, v.place)
	case v.worker == nil:
		heap.Push(&t.queue, v)
	default: // it is planned when the visit ends
		return
	}
	t.signal()
}

func (t *tender) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// spread moves a time later, a little if it is soon.
func spread(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return at.Add(rand.N(max(time.Millisecond, min(mostSpread, time.Until(at)/8))))
}

// uploaded notes a file that was just stored for a database.
func (t *tender) uploaded(s *slot, d *replicated, f ltx.FileInfo) {
	d.remote.clock.Note(f.ModTime)
	t.mu.Lock()
	var w *keeper
	if v := t.visits[s]; v != nil {
		w = v.worker
	}
	if f.Max > 1 { // of a first copy nothing can be made
		t.plan(t.of(s), spread(d.cfg.compaction.After(time.Now())))
	}
	t.mu.Unlock()
	if w != nil {
		w.Uploaded(f)
	}
}

// opened notes that a database was opened.
func (t *tender) opened(s *slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v := t.visits[s]; v != nil {
		v.guests.letIn()
	}
}

// asked notes where a replica ends, which is asked once after a start: something
// may have been due for long, unless a snapshot is all that there is.
func (t *tender) asked(s *slot, tip replica.Tip) {
	if tip.Pos.IsZero() || tip.Info.IsSnapshot() && !tip.Older {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.plan(t.of(s), time.Now().Add(rand.N(firstWithin)))
}

// forget drops a database that is gone.
func (t *tender) forget(s *slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v := t.visits[s]; v != nil && v.place >= 0 {
		heap.Remove(&t.queue, v.place)
	}
	delete(t.visits, s)
}

// status is what is known of the replica of a database; nil: nothing.
func (t *tender) status(s *slot) *CompactionReport {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.visits[s]
	switch {
	case v == nil:
		return nil
	case v.worker != nil:
		if now := v.worker.Status(); now.Listed {
			return newCompactionReport(now)
		}
	}
	return newCompactionReport(v.last)
}

// appointments are visits by the time when they are due: a heap.
type appointments []*visit

func (a appointments) Len() int           { return len(a) }
func (a appointments) Less(i, j int) bool { return a[i].due.Before(a[j].due) }
func (a appointments) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].place, a[j].place = i, j
}

// Push implements heap.Interface.
func (a *appointments) Push(v any) {
	v.(*visit).place = len(*a)
	*a = append(*a, v.(*visit))
}

// Pop implements heap.Interface.
func (a *appointments) Pop() any {
	v := (*a)[len(*a)-1]
	(*a)[len(*a)-1], *a = nil, (*a)[:len(*a)-1]
	v.place = -1
	return v
}
