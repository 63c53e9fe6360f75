package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/turns"
)

// fleet replicates the databases that are found in directories. Few of them
// are open at a time; the others are parked and cost a few kilobytes.
type fleet struct {
	line    *turns.Line
	watcher *capture.Watcher
	tender  *tender
	buckets *buckets
	log     *slog.Logger
	folders []*folder
	limit   int
	guarded bool                // somebody waits for Protected
	listed  map[string]struct{} // databases that are listed by path

	news   chan struct{} // capacity 1: there are events
	ending chan struct{} // closed by Finish
	shared fleetState
}

// fleetState is what the goroutines of a fleet share.
type fleetState struct {
	mu      sync.Mutex
	slots   map[string]*slot  // by path
	places  map[string]string // path by the key of its replica's place
	events  map[*slot]struct{}
	changed chan struct{} // closed and replaced when a database is safe, finished or gone
	crowded bool          // it was said that there are too many busy ones
}

func newFleet(cfg Config, b *buckets, shop *workshop, w *capture.Watcher) *fleet {
	log := b.log
	f := &fleet{
		line: turns.New(cfg.MaxOpen), watcher: w, buckets: b, log: log, limit: cfg.MaxOpen, guarded: cfg.Exec != "",
		listed: map[string]struct{}{}, news: make(chan struct{}, 1), ending: make(chan struct{}),
		shared: fleetState{
			slots: map[string]*slot{}, places: map[string]string{}, events: map[*slot]struct{}{}, changed: make(chan struct{}),
		},
	}
	f.tender = newTender(f, shop)
	var replicas []string
	for _, d := range cfg.Databases {
		if l, err := d.Replica.locate(); err == nil && l.dir != "" {
			replicas = append(replicas, l.dir)
		}
		if d.Dir == "" {
			f.listed[d.Path] = struct{}{}
			f.shared.places[d.Replica.key()] = d.Path
		}
	}
	for _, d := range cfg.Databases {
		if d.Dir != "" {
			f.folders = append(f.folders, newFolder(f, d, replicas))
		}
	}
	return f
}

// Run replicates until ctx ends and returns the errors of databases that were
// given up.
func (f *fleet) Run(ctx context.Context) error {
	if len(f.folders) == 0 {
		return nil
	}
	var group errgroup.Group
	for _, run := range []func(context.Context) error{f.line.Run, f.sort, f.patrol, f.tender.Run} {
		group.Go(func() error { _ = run(ctx); return nil })
	}
	for _, d := range f.folders {
		group.Go(func() error { _ = d.Run(ctx); return nil })
	}
	errs := []error{group.Wait()}
	for _, d := range f.folders {
		errs = append(errs, d.release())
	}
	for _, s := range f.all() {
		if err := s.fenced(); err != nil {
			errs = append(errs, err)
		}
	}
	return few(errs)
}

// few joins errors, but not thousands of them.
func few(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	const most = 10
	if more := len(errs) - most; more > 1 {
		errs = append(errs[:most:most], fmt.Errorf("and %d databases more", more))
	}
	return errors.Join(errs...)
}

// sort wakes the databases of which there were events, if they need it.
func (f *fleet) sort(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.news:
		}
		f.shared.mu.Lock()
		events := f.shared.events
		f.shared.events = map[*slot]struct{}{}
		f.shared.mu.Unlock()
		for s := range events {
			s.check()
		}
	}
}

// The databases are looked at one after the other, as a net below the events:
// each once in a round, which is shorter for file systems that tell no events,
// but so many at most a second.
const (
	round     = 10 * time.Minute
	atMost    = 200
	dutyPause = time.Second
)

// patrol looks at parked databases without an event, a few at a time.
func (f *fleet) patrol(ctx context.Context) error {
	tick := time.NewTicker(dutyPause)
	defer tick.Stop()
	var todo []*slot
	share, due := 0.0, 0
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		if len(todo) == 0 {
			todo = f.all()
			share = min(atMost, float64(len(todo))*float64(dutyPause)/float64(f.round()))
			due = 0
		}
		for due += int(share + 1); due > 0 && len(todo) > 0; due-- {
			if !todo[0].isOpen() {
				todo[0].check()
			}
			todo = todo[1:]
		}
	}
}

// round is how long it may take until each parked database was looked at.
func (f *fleet) round() time.Duration {
	least := round
	for _, d := range f.folders {
		if d.finder.Polls() {
			least = min(least, d.cfg.Capture.PollInterval)
		}
	}
	return max(least, dutyPause)
}

// slot returns the database at path; nil: it is none of these.
func (f *fleet) slot(path string) *slot {
	f.shared.mu.Lock()
	defer f.shared.mu.Unlock()
	return f.shared.slots[path]
}

// all returns the databases in order of their paths.
func (f *fleet) all() []*slot {
	f.shared.mu.Lock()
	slots := slices.Collect(maps.Values(f.shared.slots))
	f.shared.mu.Unlock()
	slices.SortFunc(slots, func(a, b *slot) int { return cmp.Compare(a.path, b.path) })
	return slots
}

// isScarce tells whether there are more databases than may be open.
func (f *fleet) isScarce() bool {
	f.shared.mu.Lock()
	defer f.shared.mu.Unlock()
	return len(f.shared.slots) > f.limit
}

// announce wakes those that wait for a change of the databases.
func (f *fleet) announce() {
	f.shared.mu.Lock()
	defer f.shared.mu.Unlock()
	close(f.shared.changed)
	f.shared.changed = make(chan struct{})
}

// await waits until no database is left for which pending holds.
func (f *fleet) await(ctx context.Context, slots []*slot, pending func(*slot) bool) error {
	for {
		f.shared.mu.Lock()
		changed := f.shared.changed
		f.shared.mu.Unlock()
		// What is done stays done, so it is not looked at again.
		for len(slots) > 0 && !pending(slots[len(slots)-1]) {
			slots = slots[:len(slots)-1]
		}
		if len(slots) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}
