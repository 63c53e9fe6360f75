package compaction

import (
	"context"
	"errors"
	"fmt"
	"io"

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

// putBack stores the copy of a file that is missing on the bucket, if the copy
// is good.
func (w *Worker) putBack(ctx context.Context, f ltx.FileInfo) error {
	c, err := w.copyOf(f)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = w.merger.create(ctx, f, c)
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
