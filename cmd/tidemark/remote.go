package main

import (
	"context"
	"errors"
	"sync"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
)

// remote is the replica of one database and what is known of it.
type remote struct {
	place   location
	replica *replica.Replica
	bucket  storage.Bucket
	buckets *buckets
	shared  *sharedBucket // nil: a directory
	clock   *compaction.Clock
	gate    replica.Gate

	mu     sync.Mutex
	tip    replica.Tip          // what the bucket held when it was asked last
	listed func([]ltx.FileInfo) // is told of a listing; nil: nobody is
}

// askTip asks the bucket where the replica ends.
func (r *remote) askTip(ctx context.Context) (capture.Tip, error) {
	tip, err := r.survey(ctx)
	if errors.Is(err, replica.ErrNoBackup) {
		tip, err = replica.Tip{}, r.place.mayMake()
	}
	if err != nil {
		return capture.Tip{}, err
	}
	r.noteAnswer()
	r.noteTip(tip)
	return capture.Tip{Pos: tip.Pos, PageSize: tip.PageSize, Pages: tip.Commit, At: tip.At}, nil
}

// survey asks the bucket for its tip, and hands on what was listed for it.
func (r *remote) survey(ctx context.Context) (replica.Tip, error) {
	r.mu.Lock()
	listed := r.listed
	r.mu.Unlock()
	if listed == nil {
		return r.replica.Tip(ctx)
	}
	tip, files, err := r.replica.Survey(ctx)
	if err == nil || errors.Is(err, replica.ErrNoBackup) {
		listed(files)
	}
	return tip, err
}

// handOn has what is listed handed to somebody who would list too.
func (r *remote) handOn(listed func([]ltx.FileInfo)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listed = listed
}

// noteTip remembers where the replica ends.
func (r *remote) noteTip(tip replica.Tip) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tip = tip
}

func (r *remote) lastTip() replica.Tip {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tip
}
