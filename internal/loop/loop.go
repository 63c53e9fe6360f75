// Package loop is the one loop behind all work that is repeated: a step runs
// when it is woken and at intervals, and again with growing pauses while it
// fails. It is the one place that logs an error and carries on. It must not
// know what the step does.
package loop

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Options says when the step runs. MinBackoff, MaxBackoff and Log have
// defaults: 100 ms, 30 s and no log.
type Options struct {
	Name       string          // of the step, for the log
	Interval   time.Duration   // from the end of a step to the next; 0: only when woken
	Wake       <-chan struct{} // runs the step now; waits while the step is failing
	MinBackoff time.Duration   // pause after the first failure, give or take half
	MaxBackoff time.Duration   // longest pause between failures
	Log        *slog.Logger
}

// Run calls step now, then on each wake and each interval, never twice at
// once. An error of step is logged once, until it succeeds again, and step is
// repeated with growing pauses. Run returns context.Cause(ctx) when ctx ends,
// or the first error that Fatal marked.
func Run(ctx context.Context, o Options, step func(context.Context) error) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	out := outage{log: o.Log.With("step", o.Name), pauses: o.pauses()}
	for ctx.Err() == nil {
		err := step(ctx)
		if fatal := (fatalError{}); errors.As(err, &fatal) {
			return err
		}
		if ctx.Err() != nil {
			break
		}
		wake, pause := o.Wake, o.Interval
		if err != nil {
			wake, pause = nil, out.failed(err)
		} else {
			out.succeeded()
		}
		wait(ctx, wake, pause)
	}
	return context.Cause(ctx)
}

// wait returns when ctx ends, wake is signaled or a pause above 0 is over.
func wait(ctx context.Context, wake <-chan struct{}, pause time.Duration) {
	var over <-chan time.Time
	if pause > 0 {
		over = time.After(pause)
	}
	select {
	case <-ctx.Done():
	case <-wake:
	case <-over:
	}
}

// pauses grow twofold, with jitter of half to either side that the longest
// pause includes.
func (o Options) pauses() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier = 100*time.Millisecond, 30*time.Second, 2
	if o.MinBackoff > 0 {
		b.InitialInterval = o.MinBackoff
	}
	if o.MaxBackoff > 0 {
		b.MaxInterval = o.MaxBackoff
	}
	b.MaxInterval = b.MaxInterval * 2 / 3
	b.InitialInterval = max(1, min(b.InitialInterval, b.MaxInterval))
	b.Reset()
	return b
}
