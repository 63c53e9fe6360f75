package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/loop"
	"github.com/tidemark-io/tidemark/leaser"
	"github.com/tidemark-io/tidemark/s3"
	"github.com/tidemark-io/tidemark/storage"
)

// askOthers is how long a start may wait for the locks; what does not answer by
// then is asked again later.
const askOthers = 3 * time.Second

// otherLeases are the places where nodes with a lease would keep it if they
// wrote the replicas that this sidecar writes without one.
type otherLeases struct {
	buckets *buckets
	log     *slog.Logger

	mu   sync.Mutex
	left map[string]otherLease // by place: those that have not answered
}

// otherLease is one place of a lock.
type otherLease struct {
	place location
	above bool // not that of a replica itself: only the lease of several databases is about it
}

// newOtherLeases finds the places: one or two for each replica or directory of
// replicas, most of them the same.
func newOtherLeases(cfg Config, b *buckets, log *slog.Logger) *otherLeases {
	o := &otherLeases{buckets: b, log: log, left: map[string]otherLease{}}
	for _, d := range cfg.Databases {
		l, err := d.Replica.locate()
		if err != nil {
			continue // that is told where it is opened
		}
		o.left[l.key()] = otherLease{place: l}
		if up, ok := l.parent(); ok {
			if _, known := o.left[up.key()]; !known {
				o.left[up.key()] = otherLease{place: up, above: true}
			}
		}
	}
	if l, err := cfg.leasePlace(); err == nil && cfg.HA.Lease.URL != "" {
		o.left[l.key()] = otherLease{place: l}
	}
	return o
}

// parent is the directory or prefix above a place, if that is not all there is.
func (l location) parent() (location, bool) {
	if l.dir != "" {
		l.dir = filepath.Dir(l.dir)
		return l, l.dir != string(filepath.Separator)
	}
	l.s3.Prefix = path.Dir(l.s3.Prefix)
	return l, l.s3.Prefix != "." && l.s3.Prefix != "/"
}

// Ask returns an error that wraps leaser.ErrHeld when a node has one of the
// leases. It does not wait long: Run goes on with those that did not answer.
func (o *otherLeases) Ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askOthers)
	defer cancel()
	return o.round(ctx)
}

// Run asks until all have answered, and fails when a node has one of them.
func (o *otherLeases) Run(ctx context.Context) error {
	err := loop.Run(ctx, loop.Options{MinBackoff: time.Second, MaxBackoff: time.Minute}, func(ctx context.Context) error {
		if err := o.round(ctx); err != nil {
			return loop.Fatal(err)
		}
		if len(o.pending()) > 0 {
			return errors.New("no answer about the lock")
		}
		return loop.Fatal(errAllAnswered)
	})
	if errors.Is(err, errAllAnswered) || ctx.Err() != nil {
		return nil
	}
	return err
}

var errAllAnswered = errors.New("all locks are known")

func (o *otherLeases) pending() (all []otherLease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.left {
		all = append(all, l)
	}
	return all
}

// round asks each of those that are left once.
func (o *otherLeases) round(ctx context.Context) error {
	var group errgroup.Group
	group.SetLimit(8)
	for _, l := range o.pending() {
		group.Go(func() error {
			answered, err := o.ask(ctx, l)
			if answered {
				o.mu.Lock()
				delete(o.left, l.place.key())
				o.mu.Unlock()
			}
			return err
		})
	}
	return group.Wait()
}

// ask reads one lock.
func (o *otherLeases) ask(ctx context.Context, l otherLease) (answered bool, err error) {
	b, err := o.buckets.once(ctx, l.place)
	if err != nil {
		return true, nil // that is told where it is opened
	}
	r, _, err := leaser.Read(ctx, b)
	at := l.place.String() + "/" + leaser.Key
	switch {
	case errors.Is(err, storage.ErrNotFound), err != nil && l.above && (errors.Is(err, storage.ErrForbidden) || errors.Is(err, leaser.ErrUnreadable)):
		return true, nil
	case errors.Is(err, storage.ErrForbidden), errors.Is(err, leaser.ErrUnreadable):
		o.log.Warn("whether a node with a lease writes the replica is not known", "lock", at, "error", err)
		return true, nil
	case err != nil:
		return false, nil
	case l.above && r.Head != nil: // of the only database, which is kept there
		return true, nil
	case r.Live(time.Now()):
		return true, refuseOther(at, r)
	}
	o.log.Warn("nodes with a lease wrote this replica; nothing keeps them from doing it again beside this process, "+
		"which has no lease", "lock", at, "owner", oneLine(r.Owner), "state", r.State, "expired", r.ExpiresAt)
	return true, nil
}

func refuseOther(at string, r leaser.Record) error {
	return fmt.Errorf("%s: %w by %s, generation %d, until %s: two writers of one replica fence each other; stop that node, "+
		"set lease.enabled here too, or if it is gone for good, tidemark lease break",
		at, leaser.ErrHeld, oneLine(r.Owner), r.Generation, showTime(r.ExpiresAt))
}

// once returns a bucket that sends each request once.
func (b *buckets) once(ctx context.Context, place location) (storage.Bucket, error) {
	if place.dir != "" {
		return storage.NewDir(place.dir)
	}
	place.s3.Retry = s3.Retry{Attempts: 1}
	shared, err := b.share(ctx, place.s3)
	if err != nil {
		return nil, err
	}
	return storage.Under(shared.observed, place.s3.Prefix), nil
}
