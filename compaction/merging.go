package compaction

import (
	"context"
	"errors"
	"slices"

	"github.com/tidemark-io/tidemark/internal/scratch"
)

// Merge makes every file that is due, snapshots excepted. It is the step of
// Run, and may be called beside it.
func (w *Worker) Merge(ctx context.Context) error {
	done, err := hold(ctx, w.merging)
	if err != nil {
		return err
	}
	defer done()
	for {
		s, err := w.look(ctx)
		if err != nil {
			return err
		}
		jobs := slices.DeleteFunc(s.jobs, Job.Snapshot)
		if len(jobs) == 0 {
			w.alarms.merge.set(s.next)
			return nil
		}
		if err := w.confirm(ctx); err != nil {
			w.inventory.forget()
			return err
		}
		for _, j := range jobs {
			again, err := w.make(ctx, j)
			if err != nil {
				w.inventory.forget()
				return err
			}
			if again {
				break
			}
		}
	}
}

// make makes one file. The survey is to be repeated when it shows that a source
// cannot be used.
func (w *Worker) make(ctx context.Context, j Job) (again bool, err error) {
	done, err := w.turn(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	f, err := w.merger.Merge(ctx, j)
	for errors.Is(err, scratch.ErrScratchFull) && len(j.Sources) > 1 {
		j, again = j.half(), true
		f, err = w.merger.Merge(ctx, j)
	}
	var source *SourceError
	if errors.As(err, &source) {
		w.options.Log.Warn("file cannot be merged, going on as if it were missing", "key", source.Key, "error", source.Err)
		w.inventory.exclude(source.File)
		return true, nil
	}
	if err != nil {
		return false, err
	}
	w.options.Metrics.merged(f)
	w.mu.Lock()
	w.state.merged++
	w.mu.Unlock()
	w.inventory.add(f)
	w.news(f)
	return again, nil
}
