package compaction

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/tidemark-io/tidemark/internal/scratch"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
)

// rereads is how often sources with wrong content are read again.
const rereads = 3

// Merger makes the files of jobs. It is safe for concurrent use.
type Merger struct {
	bucket  storage.Bucket
	replica *replica.Replica
	scratch *scratch.Space
	local   Local
	shelf   *Shelf
	gate    *replica.Gate
	log     *slog.Logger
}

// MergerOptions adjusts a Merger.
type MergerOptions struct {
	Local Local         // nil: all sources are read from the bucket
	Shelf *Shelf        // gets a copy of what is stored; nil: none
	Gate  *replica.Gate // held while sources are read; nil: none
	Log   *slog.Logger  // nil: none
}

// NewMerger returns a merger of the files of r, which is on b.
func NewMerger(b storage.Bucket, r *replica.Replica, s *scratch.Space, o MergerOptions) *Merger {
	if o.Gate == nil {
		o.Gate = &replica.Gate{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Merger{bucket: b, replica: r, scratch: s, local: o.Local, shelf: o.Shelf, gate: o.Gate, log: o.Log}
}

// Merge makes the file of a job and returns it as it is on the bucket. The
// sources go through scratch files, one connection and some memory at a time,
// whatever their size; the result is verified before it is stored, and never
// stored over another. A result that is there already is fine. The errors to
// act on are SourceError, scratch.ErrScratchFull, storage.ErrNotFound (a source
// is gone) and replica.ErrFenced.
func (m *Merger) Merge(ctx context.Context, j Job) (ltx.FileInfo, error) {
	target := j.Target()
	merged, err := m.merge(ctx, j)
	if err != nil {
		return ltx.FileInfo{}, fmt.Errorf("merge %d files into %s: %w", len(j.Sources), m.replica.Key(target), err)
	}
	defer merged.Close()
	f, err := m.create(ctx, target, merged)
	if err == nil && m.shelf != nil && f.Size == merged.Size() {
		if err := m.shelf.Keep(m.replica, f, merged.Reader()); err != nil {
			m.log.Debug("no copy of a merged file is kept", "error", err)
		}
	}
	return f, err
}

// merge returns a scratch file that was verified.
func (m *Merger) merge(ctx context.Context, j Job) (merged *scratch.File, err error) {
	done, err := m.gate.Read(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	g, err := m.gather(ctx, j.Sources)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	if err := g.checkClaims(); err != nil {
		return nil, err
	}
	merged, err = g.merge(ctx, j.Target())
	if err == nil || ctx.Err() != nil || errors.Is(err, scratch.ErrScratchFull) {
		return merged, err
	}
	// Merging verifies the sources; which of them is wrong is seen only when
	// they are looked at one by one.
	if err := g.prove(ctx); err != nil {
		return nil, err
	}
	return g.merge(ctx, j.Target())
}

// merge writes a scratch file and verifies it.
func (g *gathered) merge(ctx context.Context, target ltx.FileInfo) (*scratch.File, error) {
	merged, err := g.merger.scratch.Create()
	if err != nil {
		return nil, err
	}
	if err := g.mergeInto(ctx, merged, target); err != nil {
		return nil, errors.Join(err, merged.Close())
	}
	return merged, nil
}

func (g *gathered) mergeInto(ctx context.Context, merged *scratch.File, target ltx.FileInfo) error {
	sources := make([]io.Reader, len(g.sources))
	for i := range sources {
		sources[i] = g.reader(i)
	}
	_, trailer, err := ltx.Merge(ctx, merged, sources...)
	if err != nil {
		return err
	}
	h, t, err := ltx.VerifyFile(merged.Reader())
	if err != nil {
		return fmt.Errorf("verify merged file: %w", err)
	}
	if h.MinTXID != target.Min || h.MaxTXID != target.Max || t != trailer {
		return fmt.Errorf("verify merged file: %w: it holds %s-%s", ltx.ErrCorrupt, h.MinTXID, h.MaxTXID)
	}
	return nil
}
