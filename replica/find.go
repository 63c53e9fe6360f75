package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/storage"
)

const (
	findBatch = 64   // trailers read before looking at them
	findFiles = 4096 // the newest states that are looked at
)

// Find returns the newest TXID after which the database had a checksum, 0 if
// none of the newest some thousand states had. It reads the end of the files,
// newest first, and may be asked with a checksum that is nowhere; that is one
// small request for each state.
func (r *Replica) Find(ctx context.Context, sum ltx.Checksum) (ltx.TXID, error) {
	all, err := r.Inventory(ctx)
	if err != nil {
		return 0, err
	}
	candidates := borders(slices.DeleteFunc(all, func(f ltx.FileInfo) bool { return mayBeClaim(f) || f.Size < ltx.MinFileSize }))
	slices.Reverse(candidates)
	for batch := range slices.Chunk(candidates[:min(len(candidates), findFiles)], findBatch) {
		txid, err := r.findIn(ctx, batch, sum)
		if err != nil {
			return 0, fmt.Errorf("look for a state in %s: %w", r, err)
		}
		if txid != 0 {
			return txid, nil
		}
	}
	return 0, nil
}

// findIn looks at the ends of some files together. One that is damaged or gone
// tells nothing.
func (r *Replica) findIn(ctx context.Context, files []ltx.FileInfo, sum ltx.Checksum) (ltx.TXID, error) {
	sums := make([]ltx.Checksum, len(files))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(defaultJobs)
	for i, f := range files {
		g.Go(func() error {
			end := make([]byte, ltx.TrailerSize)
			err := r.fetch(ctx, f, end, f.Size-ltx.TrailerSize)
			if errors.Is(err, storage.ErrNotFound) || isDamage(err) {
				return nil
			}
			if err != nil {
				return err
			}
			if t, err := ltx.ReadTrailer(end); err == nil {
				sums[i] = t.PostApplyChecksum
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	if i := slices.Index(sums, sum); i >= 0 && sum != 0 {
		return files[i].Max, nil
	}
	return 0, nil
}
