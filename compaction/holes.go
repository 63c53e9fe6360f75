package compaction

import (
	"context"
	"errors"
	"slices"
	"time"
)

// stage is what was done about a hole.
type stage int

const (
	unknown  stage = iota
	refilled       // its files were stored again, as it was said
	left           // to a snapshot
)

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
	w.options.Metrics.holes.Set(float64(len(s.holes)))
	return s, w.mendAll(ctx, s.holes)
}

// mendAll does something about each hole that is not left to a snapshot yet.
func (w *Worker) mendAll(ctx context.Context, holes []Hole) error {
	confirmed := false
	for _, h := range holes {
		done := w.stage(h)
		if done == left {
			continue
		}
		if !confirmed {
			if err := w.confirm(ctx); err != nil {
				return err
			}
			confirmed = true
		}
		w.setStage(h, w.mend(ctx, h, done))
	}
	return nil
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
	return slices.ContainsFunc(holes, func(h Hole) bool { return w.state.holes[h] == unknown })
}

func (w *Worker) stage(h Hole) stage {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.holes[h]
}

func (w *Worker) setStage(h Hole, done stage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.holes[h] = done
}

// mend has the files of a hole stored again, or a snapshot made that reaches
// over it.
func (w *Worker) mend(ctx context.Context, h Hole, done stage) stage {
	log := w.options.Log.With("level", h.Level, "min", h.Min, "max", h.Max)
	err := w.refill(ctx, h, done)
	if err == nil {
		log.Warn("files were missing on the bucket, stored them again")
		w.inventory.forget()
		w.alarms.merge.ring()
		return refilled
	}
	if w.options.Snapshotter == nil {
		log.Warn("files are missing on the bucket, the level stops there until a snapshot reaches over them", "reason", err)
		return left
	}
	log.Warn("files are missing on the bucket, making a snapshot that reaches over them", "reason", err)
	w.mu.Lock()
	w.state.wanted = true
	w.mu.Unlock()
	w.alarms.snapshot.ring()
	return left
}

func (w *Worker) refill(ctx context.Context, h Hole, done stage) error {
	switch {
	case w.options.Refill == nil && w.options.Shelf == nil:
		return errors.New("there is no other copy")
	case done == refilled:
		return errors.New("they are missing although they were stored again")
	case w.inventory.stops(h):
		return errors.New("a damaged file has their name")
	}
	if w.options.Refill == nil {
		return w.refillFromShelf(ctx, h)
	}
	return w.options.Refill(ctx, h)
}
