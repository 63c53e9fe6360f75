package main

import (
	"context"
	"errors"
	"os"
	"runtime"

	"golang.org/x/sync/semaphore"

	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/internal/scratch"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

// shelfSize is what copies of files take that are on the bucket.
const shelfSize = 32 << 20

// workshop is what the compaction of all databases of a process shares.
type workshop struct {
	scratch *scratch.Space
	turns   *semaphore.Weighted
	shelf   *compaction.Shelf
	places  int // how many may merge, or write or upload a snapshot, at a time
}

func newWorkshop(cfg Scratch) (*workshop, error) {
	space, err := scratch.New(cfg.place(), int64(cfg.Limit))
	if err != nil {
		return nil, err
	}
	places := max(2, min(4, runtime.GOMAXPROCS(0)))
	return &workshop{
		scratch: space, turns: semaphore.NewWeighted(int64(places)), places: places, shelf: compaction.NewShelf(space, shelfSize),
	}, nil
}

// worker makes one for a replica that does nothing yet.
func (w *workshop) worker(r *remote, o compaction.Options) *keeper {
	g := &gauge{Snapshotter: o.Snapshotter}
	o.Snapshotter, o.Gate, o.Clock, o.Turns, o.Shelf = g, &r.gate, r.clock, w.turns, w.shelf
	k := &keeper{Worker: compaction.NewWorker(r.bucket, r.replica, w.scratch, o), gauge: g}
	r.handOn(k.Listed)
	return k
}

// compact runs the worker of the parts until ctx ends, from when the replica
// has answered: before that there is nothing that it could do.
func (d *replicated) compact(ctx context.Context, p *parts) error {
	if p.worker == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-d.answered:
	}
	return p.worker.Run(ctx)
}

// keepCopy keeps a copy of a file that is on the bucket, for those who merge it
// or miss it there.
func (d *replicated) keepCopy(p replica.Pending, f ltx.FileInfo) {
	shelf := d.from.shelf
	if w := d.from.workshop; w != nil {
		shelf = w.shelf
	}
	if shelf == nil {
		return
	}
	file, err := os.Open(p.Path)
	if err == nil {
		err = errors.Join(shelf.Keep(d.remote.replica, f, file), file.Close())
	}
	if err != nil {
		d.log.Debug("no copy of an uploaded file is kept", "error", err)
	}
}

// noteUpload tells the worker, or whoever stands in for it, of an upload.
func (d *replicated) noteUpload(w *keeper, f ltx.FileInfo) {
	d.succeeded(away, tipless)
	d.noteAnswer()
	d.looks.move()
	switch {
	case w != nil:
		w.Uploaded(f)
		if f.IsSnapshot() && f.Max > 1 { // which comes with a claim of its TXID
			w.Uploaded(ltx.FileInfo{Min: f.Max, Max: f.Max, Size: ltx.MinFileSize, ModTime: f.ModTime})
		}
	case d.from.uploaded != nil:
		d.from.uploaded(f)
	}
}

// noteAnswer notes that the replica answered.
func (d *replicated) noteAnswer() {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.answered:
	default:
		close(d.answered)
	}
}

// Close removes what is left of scratch files.
func (w *workshop) Close() error {
	return errors.Join(w.shelf.Close(), w.scratch.Close())
}
