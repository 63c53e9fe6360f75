package loop

import (
	"context"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Fatal marks an error that ends the loop; nil stays nil. The mark changes
// neither the message nor what errors.Is and errors.As find.
func Fatal(err error) error {
	if err == nil {
		return nil
	}
	return fatalError{err}
}

type fatalError struct{ error }

func (e fatalError) Unwrap() error { return e.error }

// outage is the time from the first failure to the next success.
type outage struct {
	log      *slog.Logger
	pauses   *backoff.ExponentialBackOff
	since    time.Time
	attempts int
}

// failed counts a failure and returns the pause before the next attempt.
func (o *outage) failed(err error) time.Duration {
	level := slog.LevelDebug
	if o.attempts == 0 {
		o.since, level = time.Now(), slog.LevelError
	}
	o.attempts++
	pause := o.pauses.NextBackOff()
	o.log.Log(context.Background(), level, "step failed", "error", err, "attempt", o.attempts, "next", pause)
	return pause
}

func (o *outage) succeeded() {
	if o.attempts == 0 {
		return
	}
	o.log.Info("step recovered", "after", time.Since(o.since), "attempts", o.attempts)
	o.attempts = 0
	o.pauses.Reset()
}
