package compaction

import (
	"context"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
)

// Status is a picture of a Worker and of the files it knows of.
type Status struct {
	Listed   bool                         // the replica was listed
	Files    [ltx.LevelSnapshot + 1]int   // by level
	Bytes    [ltx.LevelSnapshot + 1]int64 // by level
	Snapshot ltx.FileInfo                 // the newest; zero: none
	Merged   int                          // files made by this worker
	Holes    int                          // ranges that are missing and stop a level
	Error    error                        // of the failures that last; nil: none
	Since    time.Time                    // when those began
}

// Status returns the state now.
func (w *Worker) Status() Status {
	s := w.inventory.summary()
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Holes, s.Merged = len(w.state.holes), w.state.merged
	for _, f := range w.state.failures {
		if s.Error == nil || f.since.Before(s.Since) {
			s.Error, s.Since = f.err, f.since
		}
	}
	return s
}

// failure is why a step does not succeed, and since when.
type failure struct {
	err   error
	since time.Time
}

// run does a step and remembers whether it failed.
func (w *Worker) run(ctx context.Context, s step) error {
	err := s.do(ctx)
	if ctx.Err() != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	before, failing := w.state.failures[s.name]
	switch {
	case err == nil:
		delete(w.state.failures, s.name)
	case failing:
		w.state.failures[s.name] = failure{err, before.since}
	default:
		w.state.failures[s.name] = failure{err, time.Now()}
	}
	return err
}

// summary counts the files that were known last.
func (v *inventory) summary() Status {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.files != nil {
		v.counted = count(v.files)
	}
	return v.counted
}

func count(files map[fileKey]ltx.FileInfo) Status {
	s := Status{Listed: true}
	for _, f := range files {
		if f.Level < 0 || f.Level >= len(s.Files) {
			continue
		}
		s.Files[f.Level]++
		s.Bytes[f.Level] += f.Size
		if f.IsSnapshot() && f.Max > s.Snapshot.Max {
			s.Snapshot = f
		}
	}
	return s
}
