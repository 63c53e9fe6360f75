package loop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-io/tidemark/internal/loop"
	"golang.org/x/sync/errgroup"
)

var errStep = errors.New("bucket away")

// running is a loop in a bubble: when its step ran, and what it logged.
type running struct {
	began time.Time
	times []time.Duration
	log   bytes.Buffer
	fail  func(attempt int) error
	ended error
}

// run runs the loop for a while of fake time and then ends it.
func run(t *testing.T, o loop.Options, fail func(attempt int) error, during func()) *running {
	r := &running{began: time.Now(), fail: fail}
	o.Log = slog.New(slog.NewTextHandler(&r.log, nil))
	ctx, cancel := context.WithCancelCause(t.Context())
	var g errgroup.Group
	g.Go(func() error { return loop.Run(ctx, o, r.step) })
	during()
	synctest.Wait()
	cancel(errStep)
	r.ended = g.Wait()
	return r
}

func (r *running) step(context.Context) error {
	r.times = append(r.times, time.Since(r.began))
	if r.fail == nil {
		return nil
	}
	return r.fail(len(r.times))
}

func during(d time.Duration) func() { return func() { <-time.After(d) } }

func TestTheStepRunsAtStartAndAtIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, loop.Options{Interval: time.Minute}, nil, during(150*time.Second))
		if want := "[0s 1m0s 2m0s]"; fmt.Sprint(r.times) != want {
			t.Errorf("ran at %v, want %v", r.times, want)
		}
		if !errors.Is(r.ended, errStep) {
			t.Errorf("ended with %v, want the cause", r.ended)
		}
		if r.log.Len() != 0 {
			t.Errorf("logged %s", r.log.String())
		}
	})
}

func TestAWakeRunsTheStepAndMovesTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{}, 1)
		r := run(t, loop.Options{Interval: time.Minute, Wake: wake}, nil, func() {
			<-time.After(10 * time.Second)
			wake <- struct{}{}
			<-time.After(65 * time.Second)
		})
		if want := "[0s 10s 1m10s]"; fmt.Sprint(r.times) != want {
			t.Errorf("ran at %v, want %v", r.times, want)
		}
	})
}

func TestWithoutIntervalTheStepRunsOnlyWhenWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{}, 1)
		r := run(t, loop.Options{Wake: wake}, nil, func() {
			<-time.After(time.Hour)
			wake <- struct{}{}
		})
		if want := "[0s 1h0m0s]"; fmt.Sprint(r.times) != want {
			t.Errorf("ran at %v, want %v", r.times, want)
		}
	})
}

func TestAnOutageIsLoggedOnceAndItsEndToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := func(attempt int) error {
			if attempt <= 5 {
				return errStep
			}
			return nil
		}
		o := loop.Options{Name: "upload", Interval: time.Hour, MinBackoff: time.Second}
		r := run(t, o, fail, during(90*time.Minute))
		lines := strings.Split(strings.TrimSpace(r.log.String()), "\n")
		if len(lines) != 2 || len(r.times) != 7 {
			t.Fatalf("ran at %v, logged %q", r.times, lines)
		}
		if !strings.Contains(lines[0], `level=ERROR msg="step failed" step=upload error="bucket away"`) {
			t.Errorf("got %s", lines[0])
		}
		if want := fmt.Sprintf(`msg="step recovered" step=upload after=%v attempts=5`, r.times[5]); !strings.Contains(lines[1], want) {
			t.Errorf("got %s, want %s", lines[1], want)
		}
	})
}

func TestPausesGrowWithJitterUpToTheirCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := loop.Options{MinBackoff: time.Second, MaxBackoff: 15 * time.Second}
		r := run(t, o, func(int) error { return errStep }, during(5*time.Minute))
		middle := time.Second
		for i := range r.times[1:] {
			pause := r.times[i+1] - r.times[i]
			if pause < middle/2 || pause > middle*3/2 || pause > 15*time.Second {
				t.Fatalf("pause %d is %v, want %v give or take half", i, pause, middle)
			}
			middle = min(2*middle, 10*time.Second)
		}
		if len(r.times) < 20 {
			t.Errorf("ran %d times", len(r.times))
		}
	})
}

func TestSuccessStartsThePausesAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := func(attempt int) error {
			if attempt == 8 {
				return nil
			}
			return errStep
		}
		r := run(t, loop.Options{Interval: time.Hour, MinBackoff: time.Second}, fail, during(3*time.Hour))
		if pause := r.times[9] - r.times[8]; pause > 1500*time.Millisecond {
			t.Errorf("first pause of the second outage is %v", pause)
		}
	})
}
