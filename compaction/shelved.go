package compaction

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

// shelfOf is the part of a Shelf that is about one replica. It implements Local.
type shelfOf struct {
	shelf   *Shelf
	replica *replica.Replica
}

// Open implements Local.
func (s shelfOf) Open(f ltx.FileInfo) (io.ReadCloser, error) {
	c, err := s.shelf.open(s.replica, f)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// refill stores the copies again that lead over a hole.
func (w *Worker) refillFromShelf(ctx context.Context, h Hole) error {
	var files []ltx.FileInfo
	for _, f := range w.options.Shelf.list(w.merger.replica) {
		if f.Level < h.Level {
			files = append(files, f)
		}
	}
	plan, err := replica.Plan(files, h.Min-1, h.Max)
	if err != nil {
		return errors.New("there is no other copy of all of them")
	}
	for _, f := range plan {
		if err := w.putBack(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// copies are the files of the replica that are here.
func (w *Worker) copies() []ltx.FileInfo {
	if w.options.Shelf == nil {
		return nil
	}
	return w.options.Shelf.list(w.merger.replica)
}

// putBackMissing stores the copies again of files that a listing misses which
// was made after they were stored.
func (w *Worker) putBackMissing(ctx context.Context, copies, listed []ltx.FileInfo) error {
	there := map[fileKey]bool{}
	for _, f := range slices.Concat(listed, w.inventory.damaged()) {
		there[keyOf(f)] = true
	}
	var again []ltx.FileInfo
	for _, f := range copies {
		if there[keyOf(f)] {
			continue
		}
		switch err := w.putBack(ctx, f); {
		case err == nil:
			again = append(again, f)
		case isBad(err):
			w.options.Shelf.forget(w.merger.replica, []ltx.FileInfo{f})
		case !errors.Is(err, fs.ErrNotExist): // the copy went meanwhile
			return fmt.Errorf("store a missing file again: %w", err)
		}
	}
	if len(again) > 0 {
		w.options.Log.Warn("files were missing on the bucket, stored them again", "files", len(again), "first", w.merger.replica.Key(again[0]))
	}
	return nil
}

// putBack stores the copy of a file that is missing on the bucket, if the copy
// is good.
func (w *Worker) putBack(ctx context.Context, f ltx.FileInfo) error {
	c, err := w.copyOf(f)
	if err != nil {
		return err
	}
	defer c.Close()
	stored, err := w.merger.create(ctx, f, c)
	if err == nil {
		w.inventory.add(stored)
	}
	return err
}

// copyOf returns the copy of a file that is here, verified.
func (w *Worker) copyOf(f ltx.FileInfo) (*shelfCopy, error) {
	c, err := w.options.Shelf.open(w.merger.replica, f)
	if err != nil {
		return nil, err
	}
	h, _, err := ltx.VerifyFile(c.Reader())
	if err == nil && (h.MinTXID != f.Min || h.MaxTXID != f.Max) {
		err = fmt.Errorf("%w: it holds %s-%s", ltx.ErrCorrupt, h.MinTXID, h.MaxTXID)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("verify copy of %s: %w", w.merger.replica.Key(f), err), c.Close())
	}
	return c, nil
}
