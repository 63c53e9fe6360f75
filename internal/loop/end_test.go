package loop_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-io/tidemark/internal/loop"
)

func TestAWakeDoesNotShortenAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{}, 1)
		fail := func(attempt int) error {
			if attempt == 1 {
				return errStep
			}
			return nil
		}
		r := run(t, loop.Options{Wake: wake, MinBackoff: time.Minute, MaxBackoff: time.Hour}, fail, func() {
			wake <- struct{}{}
			<-time.After(time.Hour)
		})
		if len(r.times) != 3 || r.times[1] < 30*time.Second || r.times[2] != r.times[1] {
			t.Errorf("ran at %v, want the retry after a pause and the wake right after it", r.times)
		}
	})
}

func TestAFatalErrorEndsTheLoop(t *testing.T) {
	errFenced := errors.New("fenced")
	steps := 0
	err := loop.Run(t.Context(), loop.Options{Interval: time.Hour}, func(context.Context) error {
		steps++
		return fmt.Errorf("upload: %w", loop.Fatal(errFenced))
	})
	if !errors.Is(err, errFenced) || err.Error() != "upload: fenced" || steps != 1 {
		t.Errorf("got %v after %d steps", err, steps)
	}
	if loop.Fatal(nil) != nil {
		t.Error("no error became a fatal one")
	}
}

func TestAStepThatFailsBecauseTheLoopEndsIsNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		r := &running{}
		r.fail = func(int) error {
			cancel(errStep)
			return ctx.Err()
		}
		o := loop.Options{Log: slog.New(slog.NewTextHandler(&r.log, nil))}
		if err := loop.Run(ctx, o, r.step); !errors.Is(err, errStep) || len(r.times) != 1 || r.log.Len() != 0 {
			t.Errorf("got %v after %d steps, log %q", err, len(r.times), r.log.String())
		}
	})
}

func TestAnEndedContextRunsNoStep(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStep)
	r := &running{}
	if err := loop.Run(ctx, loop.Options{}, r.step); !errors.Is(err, errStep) || len(r.times) != 0 {
		t.Errorf("got %v after %d steps", err, len(r.times))
	}
}

func TestTheLoopEndsDuringAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := loop.Options{MinBackoff: time.Hour, MaxBackoff: 24 * time.Hour}
		r := run(t, o, func(int) error { return errStep }, during(time.Second))
		if !errors.Is(r.ended, errStep) || len(r.times) != 1 || time.Since(r.began) != time.Second {
			t.Errorf("got %v after %d steps and %v", r.ended, len(r.times), time.Since(r.began))
		}
	})
}
