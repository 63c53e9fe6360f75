package compaction

import (
	"context"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
)

// Expire deletes what has expired by a fresh listing. It is the step of Run,
// and may be called beside it.
func (w *Worker) Expire(ctx context.Context) error {
	r := w.options.Config.Retention
	files, err := w.inventory.load(ctx)
	if err != nil {
		return err
	}
	now, known := w.inventory.clock.now()
	if !known { // there is no file
		return nil
	}
	if len(expired(files, w.inventory.damaged(), r, w.confirmed(), now)) > 0 || len(w.doubtful(files)) > 0 {
		copies := w.copies()
		if files, err = w.inventory.list(ctx); err != nil {
			return err
		}
		if err := w.confirm(ctx); err != nil {
			return err
		}
		if err := w.putBackMissing(ctx, copies, files); err != nil {
			return err
		}
		if err := w.delete(ctx, files, now); err != nil {
			w.inventory.forget()
			return err
		}
	}
	w.mu.Lock()
	w.state.lastDeletion = time.Now()
	w.mu.Unlock()
	if next := nextExpiry(files, r, now); !next.IsZero() {
		w.alarms.expire.set(time.Now().Add(next.Sub(now)))
	}
	return nil
}

// forget notes that files are gone.
func (w *Worker) forget(gone []ltx.FileInfo) {
	w.inventory.remove(gone)
	if w.options.Shelf != nil {
		w.options.Shelf.forget(w.merger.replica, gone)
	}
}

// delete deletes what has expired, and what does not belong there.
func (w *Worker) delete(ctx context.Context, files []ltx.FileInfo, now time.Time) error {
	gone := expired(files, w.inventory.damaged(), w.options.Config.Retention, w.confirmed(), now)
	if err := w.retainer.deleteAll(ctx, gone); err != nil {
		return err
	}
	w.options.Metrics.deleted(gone)
	w.forget(gone)
	w.options.Log.Debug("expired files deleted", "files", len(gone))
	files = slices.DeleteFunc(slices.Clone(files), func(f ltx.FileInfo) bool { return slices.Contains(gone, f) })
	return w.clearStrays(ctx, files)
}

// nextExpiry is when files get old enough for something to expire, the next
// pause excepted; zero if nothing gets older any more.
func nextExpiry(files []ltx.FileInfo, r Retention, now time.Time) (next time.Time) {
	for _, f := range files {
		for _, age := range []time.Duration{r.Level0, r.Window} {
			if t := f.ModTime.Add(age); t.After(now) && (next.IsZero() || t.Before(next)) {
				next = t
			}
		}
	}
	if next.IsZero() {
		return next
	}
	return later(next, now.Add(r.Pause()))
}
