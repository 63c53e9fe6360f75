package compaction

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
)

// deleteBatch is how many keys one request names at most.
const deleteBatch = 1000

// Retainer deletes what has expired.
type Retainer struct {
	bucket    storage.Bucket
	replica   *replica.Replica
	gate      *replica.Gate
	retention Retention
}

// NewRetainer returns a retainer of the files of r, which is on b. Reads of
// this process that must not lose files meanwhile go through g (nil: there are
// none).
func NewRetainer(b storage.Bucket, r *replica.Replica, g *replica.Gate, retention Retention) *Retainer {
	if g == nil {
		g = &replica.Gate{}
	}
	return &Retainer{bucket: b, replica: r, gate: g, retention: retention}
}

// Expire deletes those of files that have expired, and returns them. Files must
// be a listing that was just made: what stands in for a deleted file must have
// been seen there. It waits for the reads of this process. On an error, which
// names each key that could not be deleted, some files are gone and others are
// not.
func (t *Retainer) Expire(ctx context.Context, files []ltx.FileInfo, confirmed ltx.TXID, now time.Time) ([]ltx.FileInfo, error) {
	gone := Expired(files, t.retention, confirmed, now)
	return gone, t.deleteAll(ctx, gone)
}

// deleteAll deletes what leads furthest first, snapshots last: wherever it is
// broken off, what is left is reached as before.
func (t *Retainer) deleteAll(ctx context.Context, files []ltx.FileInfo) error {
	ordered := slices.SortedFunc(slices.Values(files), func(a, b ltx.FileInfo) int {
		switch {
		case a.IsSnapshot() == b.IsSnapshot():
			return cmp.Compare(b.Max, a.Max)
		case a.IsSnapshot():
			return 1
		}
		return -1
	})
	for batch := range slices.Chunk(ordered, deleteBatch) {
		if err := t.delete(ctx, batch); err != nil {
			return fmt.Errorf("delete expired files: %w", err)
		}
	}
	return nil
}

func (t *Retainer) delete(ctx context.Context, files []ltx.FileInfo) error {
	keys := make([]string, len(files))
	for i, f := range files {
		keys[i] = t.replica.Key(f)
	}
	done, err := t.gate.Delete(ctx)
	if err != nil {
		return err
	}
	defer done()
	return t.bucket.Delete(ctx, keys...)
}
