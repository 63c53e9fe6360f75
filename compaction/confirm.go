package compaction

import (
	"context"
	"fmt"

	"github.com/tidemark-io/tidemark/ltx"
)

// confirmed is the highest TXID that may be worked with.
func (w *Worker) confirmed() ltx.TXID {
	if w.options.Confirmed == nil {
		return ^ltx.TXID(0)
	}
	return w.options.Confirmed()
}

// confirm makes sure that what was listed until now belongs to the history.
// Without that, a writer that others have shut out could make a file of its own
// stray ones, or delete what is missed then.
func (w *Worker) confirm(ctx context.Context) error {
	if w.options.Confirm == nil {
		return nil
	}
	if err := w.options.Confirm(ctx); err != nil {
		return fmt.Errorf("confirm what is uploaded: %w", err)
	}
	return nil
}
