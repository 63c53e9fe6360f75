package compaction

import (
	"context"
	"errors"
	"time"
)

// Tend does once what is due now, for a worker that does not run, and returns
// when more will be; zero: never, unless something is uploaded. After an error
// what was not done is due still. That a snapshot does not fit is no error here:
// it is logged, and has its time.
func (w *Worker) Tend(ctx context.Context) (next time.Time, err error) {
	defer func() {
		for _, s := range w.steps() {
			s.alarm.clear()
		}
	}()
	var errs []error
	for _, s := range w.steps() {
		err := w.run(ctx, s)
		if ctx.Err() != nil {
			return time.Time{}, context.Cause(ctx)
		}
		if !errors.Is(err, ErrUnfit) {
			errs = append(errs, err)
		}
	}
	for _, s := range w.steps() {
		if at := s.alarm.next(); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next, errors.Join(errs...)
}

// After is when the first thing is to be done about a file that is uploaded at
// a moment.
func (c Config) After(uploaded time.Time) time.Time {
	if len(c.Levels) > 1 {
		first := c.Levels[1].Interval
		return settled(bucketEnd(uploaded, first), first)
	}
	return bucketEnd(uploaded, c.Snapshots)
}
