package compaction

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/tidemark-io/tidemark/internal/loop"
	"github.com/tidemark-io/tidemark/internal/scratch"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
)

// Options says how a Worker works, and with whom.
type Options struct {
	Config      Config
	Snapshotter Snapshotter // nil: no snapshots are made
	// Local has files that need not be read from the bucket, and Shelf takes
	// those that the worker stores; nil Local: those of the shelf.
	Local Local
	Shelf *Shelf
	// Refill, if not nil, stores the files of a hole again that are still here;
	// they need not be told to Uploaded. On an error, or if the hole stays, it
	// is left to a snapshot. Nil: from the shelf.
	Refill func(context.Context, Hole) error
	// Confirmed returns the highest confirmed TXID, and Wake is called when it
	// has moved. Nil: all that is uploaded is confirmed.
	Confirmed func() ltx.TXID
	// Confirm returns once everything that was uploaded before it was called
	// is confirmed. It is called after the files were listed and before
	// anything is stored or deleted because of them; on an error neither is
	// done. Nil: all that is uploaded is confirmed.
	Confirm func(context.Context) error
	Gate    *replica.Gate       // shared with the reads of this process
	Turns   *semaphore.Weighted // shared by the databases of a process: one for each that may work at a time
	Clock   *Clock              // of the bucket, shared by its workers; nil: one of its own
	Metrics *Metrics            // nil: none that anybody sees
	Log     *slog.Logger
}

// Worker compacts one replica: it merges, adds snapshots and deletes what has
// expired, when a bucket is over and as long as something changes. It lists the
// replica once and is told by Uploaded what comes; without news it asks the
// bucket for nothing. After an error, before it deletes, and before it takes a
// hole for one, it lists anew.
type Worker struct {
	options   Options
	inventory *inventory
	merger    *Merger
	retainer  *Retainer

	alarms  alarms
	unfit   *unfit
	merging chan struct{} // capacity 1: held while merging
	taking  chan struct{} // capacity 1: held while a snapshot is made

	mu    sync.Mutex
	state state
}

// alarms wake the three loops of a Worker.
type alarms struct{ merge, snapshot, expire *alarm }

// state is what the loops of a Worker tell each other.
type state struct {
	holes        map[Hole]stage
	moved        chan struct{} // closed at the next news
	wanted       bool          // a snapshot, whether it is due or not
	snapshotDue  time.Time     // of the next change
	lastDeletion time.Time
	merged       int
	failures     map[string]failure // by step
	runs         bool
	sound        map[stored]bool // suspects that nothing was proven of
}

// NewWorker returns a worker on the files of r, which is on b. It does nothing
// before Run.
func NewWorker(b storage.Bucket, r *replica.Replica, s *scratch.Space, o Options) *Worker {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Gate == nil {
		o.Gate = &replica.Gate{}
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	if o.Clock == nil {
		o.Clock = &Clock{}
	}
	if o.Local == nil && o.Shelf != nil {
		o.Local = shelfOf{o.Shelf, r}
	}
	large := &unfit{until: map[string]time.Time{}}
	if o.Shelf != nil {
		large = o.Shelf.unfit
	}
	return &Worker{
		options: o, unfit: large, inventory: newInventory(r, o.Clock),
		merger:   NewMerger(b, r, s, MergerOptions{Local: o.Local, Shelf: o.Shelf, Gate: o.Gate, Log: o.Log}),
		retainer: NewRetainer(b, r, o.Gate, o.Config.Retention),
		alarms:   alarms{newAlarm(), newAlarm(), newAlarm()},
		merging:  make(chan struct{}, 1), taking: make(chan struct{}, 1),
		state: state{holes: map[Hole]stage{}, sound: map[stored]bool{}, failures: map[string]failure{}, moved: make(chan struct{})},
	}
}

// Run works until ctx ends and returns its cause, or replica.ErrFenced.
func (w *Worker) Run(ctx context.Context) error {
	w.setRunning(true)
	defer w.setRunning(false)
	g, ctx := errgroup.WithContext(ctx)
	for _, s := range w.steps() {
		s.alarm.begin()
		s.pauses.Name, s.pauses.Wake, s.pauses.Log = s.name, s.alarm.wake, w.options.Log
		g.Go(func() error {
			defer s.alarm.clear()
			return loop.Run(ctx, s.pauses, func(ctx context.Context) error {
				if err := w.run(ctx, s); err != nil && !errors.Is(err, ErrUnfit) {
					return fatal(err)
				}
				s.alarm.done()
				return nil
			})
		})
	}
	return g.Wait()
}

func (w *Worker) setRunning(now bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.runs = now
}

func (w *Worker) running() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.runs
}

// step is one of the things a Worker does.
type step struct {
	name   string
	alarm  *alarm
	pauses loop.Options // after errors
	do     func(context.Context) error
}

func (w *Worker) steps() []step {
	steps := []step{{"merge", w.alarms.merge, loop.Options{MinBackoff: time.Second, MaxBackoff: 5 * time.Minute}, w.Merge}}
	if w.options.Snapshotter != nil {
		steps = append(steps, step{"snapshot", w.alarms.snapshot, loop.Options{MinBackoff: 5 * time.Second, MaxBackoff: 30 * time.Minute}, w.snapshot})
	}
	if !w.options.Config.Retention.External {
		steps = append(steps, step{"retention", w.alarms.expire, loop.Options{MinBackoff: time.Minute, MaxBackoff: time.Hour}, w.Expire})
	}
	return steps
}

// Idle tells that a running worker has nothing to do, now or later, unless it is
// told of something. It may then be stopped until the database changes.
func (w *Worker) Idle() bool {
	return w.alarms.merge.idle() && w.alarms.snapshot.idle() && w.alarms.expire.idle()
}

// fatal ends the loop when this process must not write any more.
func fatal(err error) error {
	if errors.Is(err, replica.ErrFenced) {
		return loop.Fatal(err)
	}
	return err
}

// Listed tells of all files, as they were listed a moment ago: the worker need
// not list them itself. What was listed before counts.
func (w *Worker) Listed(files []ltx.FileInfo) { w.inventory.listed(files) }

// Uploaded tells of a file that was just stored, with the time that the bucket
// gave it. It does not block and may be called before Run.
func (w *Worker) Uploaded(f ltx.FileInfo) {
	w.inventory.add(f)
	w.news(f)
	w.move()
}

// Wake lets the worker look again: more is confirmed.
func (w *Worker) Wake() {
	w.move()
	w.alarms.merge.ring()
	if w.options.Snapshotter != nil {
		w.alarms.snapshot.ring()
	}
}

// news sets the alarms that a new file gives reason for.
func (w *Worker) news(f ltx.FileInfo) {
	c := w.options.Config
	now := time.Now()
	if f.IsSnapshot() || f.Level == ltx.LevelSnapshot {
		w.alarms.merge.set(now) // it may reach over a hole
	} else if next := f.Level + 1; next < len(c.Levels) {
		w.alarms.merge.set(settled(bucketEnd(now, c.Levels[next].Interval), c.Levels[next].Interval))
	}
	w.mu.Lock()
	due, last := w.state.snapshotDue, w.state.lastDeletion
	w.mu.Unlock()
	if w.options.Snapshotter != nil {
		w.alarms.snapshot.set(later(now, due))
	}
	if !c.Retention.External {
		w.alarms.expire.set(later(now.Add(c.Retention.Level0), last.Add(c.Retention.Pause())))
	}
}

// settled is a little after the end of a bucket: what was being uploaded then
// belongs to it, and its own file is not to be made twice.
func settled(end time.Time, interval time.Duration) time.Time {
	return end.Add(min(time.Second, interval/10))
}

// Pause is the shortest time between two deletions, so that many files go with
// one request.
func (r Retention) Pause() time.Duration { return r.Level0 / 4 }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// turn waits for the worker's turn among all databases.
func (w *Worker) turn(ctx context.Context) (done func(), err error) {
	t := w.options.Turns
	if t == nil {
		return func() {}, nil
	}
	if err := t.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { t.Release(1) }, nil
}

// hold takes a place of which there is one.
func hold(ctx context.Context, place chan struct{}) (done func(), err error) {
	select {
	case place <- struct{}{}:
		return func() { <-place }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// moves returns what is closed at the next news.
func (w *Worker) moves() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.moved
}

// move lets those go on who wait for news.
func (w *Worker) move() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.state.moved)
	w.state.moved = make(chan struct{})
}
