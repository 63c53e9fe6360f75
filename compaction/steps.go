package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/internal/loop"
	"github.com/tidemark-io/tidemark/internal/scratch"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

// fatal ends the loop when this process must not write any more.
func fatal(err error) error {
	if errors.Is(err, replica.ErrFenced) {
		return loop.Fatal(err)
	}
	return err
}

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

// look surveys what is known and deals with the holes that show.
func (w *Worker) look(ctx context.Context) (*survey, error) {
	files, err := w.inventory.load(ctx)
	if err != nil {
		return nil, err
	}
	s := look(files, w.options.Config, w.confirmed(), time.Now())
	if w.newHoles(s.holes) {
		if files, err = w.inventory.list(ctx); err != nil {
			return nil, err
		}
		s = look(files, w.options.Config, w.confirmed(), time.Now())
	}
	for _, h := range s.holes {
		if w.note(h) {
			w.mend(ctx, h)
		}
	}
	return s, nil
}

// newHoles tells whether some of the holes are not known, and forgets those
// that are gone.
func (w *Worker) newHoles(holes []Hole) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for h := range w.state.holes {
		if !slices.Contains(holes, h) {
			delete(w.state.holes, h)
		}
	}
	return slices.ContainsFunc(holes, func(h Hole) bool { return !w.state.holes[h] })
}

// note remembers a hole and tells whether it is new.
func (w *Worker) note(h Hole) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.state.holes[h]
	w.state.holes[h] = true
	return !known
}

// mend has the files of a hole stored again, or a snapshot made that reaches
// over it.
func (w *Worker) mend(ctx context.Context, h Hole) {
	log := w.options.Log.With("level", h.Level, "min", h.Min, "max", h.Max)
	err := errors.New("the files cannot be stored again")
	// A damaged object is in the way of its own replacement.
	if w.options.Refill != nil && !w.inventory.excludes(h) {
		if err = w.options.Refill(ctx, h); err == nil {
			log.Warn("files were missing on the bucket, stored them again")
			w.alarms.merge.ring()
			return
		}
	}
	if w.options.Snapshotter == nil {
		log.Warn("files are missing on the bucket, the level stops there until a snapshot reaches over them", "reason", err)
		return
	}
	log.Warn("files are missing on the bucket, making a snapshot that reaches over them", "reason", err)
	w.mu.Lock()
	w.state.wanted = true
	w.mu.Unlock()
	w.alarms.snapshot.ring()
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
	w.inventory.add(f)
	w.news(f)
	return again, nil
}

// snapshot makes one if it is due or wanted.
func (w *Worker) snapshot(ctx context.Context) error {
	files, err := w.inventory.load(ctx)
	if err != nil {
		return err
	}
	s := look(files, w.options.Config, w.confirmed(), time.Now())
	w.mu.Lock()
	w.state.snapshotDue = s.snapshotDue
	wanted := w.state.wanted
	w.mu.Unlock()
	if !wanted && !slices.ContainsFunc(s.jobs, Job.Snapshot) {
		w.alarms.snapshot.set(s.snapshotNext)
		return nil
	}
	if _, err := w.Snapshot(ctx); err != nil {
		w.inventory.forget()
		return err
	}
	return nil
}

// Snapshot makes one now and returns its file. If nothing is newer than the
// newest snapshot, it is that one.
func (w *Worker) Snapshot(ctx context.Context) (ltx.FileInfo, error) {
	done, err := hold(ctx, w.taking)
	if err != nil {
		return ltx.FileInfo{}, err
	}
	defer done()
	files, err := w.inventory.load(ctx)
	if err != nil {
		return ltx.FileInfo{}, err
	}
	if f, ok := upToDate(files); ok {
		w.took()
		return f, nil
	}
	f, err := w.take(ctx)
	if err != nil {
		return ltx.FileInfo{}, fmt.Errorf("snapshot: %w", err)
	}
	w.inventory.add(f)
	w.took()
	w.news(f)
	return f, nil
}
