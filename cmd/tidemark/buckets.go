package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/s3"
	"github.com/tidemark-io/tidemark/storage"
)

// buckets are the places of one process. Databases whose replicas lie in one
// S3 bucket, reached by the same settings, share its client with its
// connections and its credentials; each has but its prefix.
type buckets struct {
	metrics  *metrics
	log      *slog.Logger
	clock    compaction.Clock // of directories
	answered chan struct{}    // capacity 1: a bucket answered for the first time
	fence    func(storage.Bucket) storage.Bucket

	mu     sync.Mutex
	shared map[sharedKey]*sharedBucket
}

// sharedKey is all of a place but its prefix.
type sharedKey struct {
	settings s3.Config // no prefix and no pointers
	style    string    // force-path-style
}

// sharedBucket is an S3 bucket and which parts of it are ours.
type sharedBucket struct {
	s3       *s3.Bucket
	observed storage.Bucket
	clock    compaction.Clock

	mu       sync.Mutex
	prefixes map[string]struct{} // as the settings name them, so they are few
	answered bool
	cleaned  bool
}

func newBuckets(m *metrics, log *slog.Logger) *buckets {
	return &buckets{
		metrics: m, log: log, answered: make(chan struct{}, 1), shared: map[sharedKey]*sharedBucket{},
		fence: func(b storage.Bucket) storage.Bucket { return b },
	}
}

// behind returns the same places, all of them behind a fence. They share the
// clients that there are.
func (b *buckets) behind(fence func(storage.Bucket) storage.Bucket) *buckets {
	fenced := newBuckets(b.metrics, b.log)
	fenced.fence = fence
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.Copy(fenced.shared, b.shared)
	return fenced
}

// prepare finds settings that can never work before the first database is found
// for which they are.
func (b *buckets) prepare(ctx context.Context, r Replica) error {
	place, err := r.locate()
	if err == nil {
		_, err = b.remote(ctx, place, b.log)
	}
	return err
}

// remote returns the replica at a place and sends nothing. The first of an S3
// bucket loads the AWS settings; what is wrong with those is a usage error. The
// log of the replica is log.
func (b *buckets) remote(ctx context.Context, place location, log *slog.Logger) (*remote, error) {
	r := &remote{place: place, buckets: b}
	if place.dir != "" {
		dir, err := storage.NewDir(place.dir)
		if err != nil {
			return nil, err
		}
		r.bucket, r.clock = b.fence(b.metrics.bucket.Observed(dir)), &b.clock
		r.replica = replica.New(r.bucket, replica.LayoutDir, log)
		return r, nil
	}
	shared, err := b.share(ctx, place.s3)
	if err != nil {
		return nil, usagef("replica %s: %v", place, err)
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.prefixes[place.base] = struct{}{}
	r.shared, r.clock, r.bucket = shared, &shared.clock, b.fence(storage.Under(shared.observed, place.s3.Prefix))
	r.replica = replica.New(r.bucket, replica.LayoutObject, log)
	return r, nil
}

func (b *buckets) share(ctx context.Context, c s3.Config) (*sharedBucket, error) {
	c.Prefix = ""
	key := sharedKey{settings: c}
	if key.settings.ForcePathStyle = nil; c.ForcePathStyle != nil {
		key.style = fmt.Sprint(*c.ForcePathStyle)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if shared, ok := b.shared[key]; ok {
		return shared, nil
	}
	bucket, err := s3.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	shared := &sharedBucket{s3: bucket, observed: b.metrics.bucket.Observed(bucket), prefixes: map[string]struct{}{}}
	b.shared[key] = shared
	return shared, nil
}

// Run removes, once for each bucket, what killed processes left of uploads in
// parts, which the service charges for and no listing shows. It waits for an
// answer of the bucket, so that what is wrong with it is said by who needs it.
func (b *buckets) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-b.answered:
		}
		b.mu.Lock()
		all := slices.Collect(maps.Values(b.shared))
		b.mu.Unlock()
		for _, shared := range all {
			if err := shared.clean(ctx); err != nil && ctx.Err() == nil {
				b.log.Warn("unfinished uploads were not cleaned up", "bucket", shared.s3, "error", err)
			}
		}
	}
}

// clean looks for unfinished uploads below the prefixes that are ours by now.
func (s *sharedBucket) clean(ctx context.Context) error {
	s.mu.Lock()
	ours := slices.Collect(maps.Keys(s.prefixes))
	due := s.answered && !s.cleaned && len(ours) > 0
	s.cleaned = s.cleaned || due
	s.mu.Unlock()
	if !due {
		return nil
	}
	return s.s3.CleanUploads(ctx, ours...)
}

// noteAnswer wakes Run when the bucket of r answered for the first time.
func (r *remote) noteAnswer() {
	if r.shared == nil {
		return
	}
	r.shared.mu.Lock()
	defer r.shared.mu.Unlock()
	if r.shared.answered {
		return
	}
	r.shared.answered = true
	select {
	case r.buckets.answered <- struct{}{}:
	default:
	}
}
