package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
)

// remote is the replica of one database and what is known of it.
type remote struct {
	place   location
	replica *replica.Replica
	bucket  storage.Bucket
	reached chan struct{} // closed once the bucket has answered

	mu  sync.Mutex
	tip replica.Tip // what the bucket held when it was asked last
}

// newRemote sends nothing.
func newRemote(ctx context.Context, place location, log *slog.Logger) (*remote, error) {
	bucket, layout, err := place.open(ctx)
	if err != nil {
		return nil, err
	}
	return &remote{place: place, replica: replica.New(bucket, layout, log), bucket: bucket, reached: make(chan struct{})}, nil
}

// askTip asks the bucket where the replica ends.
func (r *remote) askTip(ctx context.Context) (capture.Tip, error) {
	tip, err := r.replica.Tip(ctx)
	if errors.Is(err, replica.ErrNoBackup) {
		tip, err = replica.Tip{}, nil
	}
	if err != nil {
		return capture.Tip{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tip = tip
	select {
	case <-r.reached:
	default:
		close(r.reached)
	}
	return capture.Tip{Pos: tip.Pos, PageSize: tip.PageSize, Pages: tip.Commit}, nil
}

func (r *remote) lastTip() replica.Tip {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tip
}

// cleanUploads removes what a killed process left of uploads in parts, which
// the service charges for and no listing shows. It waits for an answer of the
// bucket, so that what is wrong with it is said by who needs it.
func (r *remote) cleanUploads(ctx context.Context, log *slog.Logger) {
	b, ok := r.bucket.(interface{ CleanUploads(context.Context) error })
	if !ok {
		return
	}
	select {
	case <-ctx.Done():
		return
	case <-r.reached:
	}
	if err := b.CleanUploads(ctx); err != nil && ctx.Err() == nil {
		log.Warn("unfinished uploads were not cleaned up", "error", err)
	}
}
