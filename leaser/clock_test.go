package leaser_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/leaser"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

// floor fails a few times, then tells a generation.
func floor(generation uint64, failures *int) func(context.Context) (uint64, error) {
	return func(context.Context) (uint64, error) {
		if *failures > 0 {
			*failures--
			return 0, errors.New("no answer")
		}
		return generation, nil
	}
}

func TestClocks(t *testing.T) {
	for name, test := range map[string]struct {
		boot, wall time.Duration
		lost       bool
	}{
		"after a suspend the lease is lost":               {boot: time.Minute, wall: time.Minute, lost: true},
		"after a suspend with the wall clock still wrong": {boot: time.Minute, lost: true},
		"restored from a snapshot the lease is lost":      {wall: time.Minute, lost: true},
		"a wall clock that is set back says nothing":      {wall: -time.Hour},
		"a small step of the wall clock is survived":      {wall: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b storage.Bucket) {
				a := prepare(t, b, "a").start()
				defer stopAll(a)
				pass(2 * time.Second)
				a.clock.shift(test.boot, test.wall)
				if lost := a.term().Check() != nil; lost != test.lost {
					t.Errorf("at once: lost %v, want %v", lost, test.lost)
				}
				pass(500 * time.Millisecond)
				if lost := a.count("lost") == 1; lost != test.lost {
					t.Errorf("after half a second: lost %v, want %v", lost, test.lost)
				}
			})
		})
	}
}

func TestAWallClockSetBackDoesNotProlongALease(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a").start()
		defer stopAll(a)
		pass(2 * time.Second)
		a.clock.shift(0, -time.Hour)
		a.bucket.Inject(storagetest.Fault{Effect: storagetest.Hang})
		pass(10 * time.Second)
		if a.count("lost") != 1 {
			t.Error("the lease is held for longer")
		}
	})
}

func TestASlowAndAFastWallClockChangeNothing(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a, c, d := three(t, b)
		defer stopAll(a, c, d)
		c.clock.shift(0, 10*time.Hour)
		d.clock.shift(0, -10*time.Hour)
		pass(5 * time.Minute)
		a.is(leaser.Primary)
		if a.count("primary")+c.count("primary")+d.count("primary") != 1 {
			t.Error("another node took the lease of one that is alive")
		}
	})
}

func TestTheSystemsClockAdvances(t *testing.T) {
	var c leaser.SystemClock
	first := c.Now()
	<-time.After(10 * time.Millisecond)
	second := c.Now()
	if d := second.Boot - first.Boot; d < 10*time.Millisecond || d > time.Hour {
		t.Errorf("boot time advanced by %v", d)
	}
	if !second.Wall.After(first.Wall) {
		t.Errorf("wall clock went from %v to %v", first.Wall, second.Wall)
	}
}

// aged tells the age of its objects by a clock of its own.
type aged struct {
	storage.Bucket
	written time.Time
}

func TestTheAgeOfALockShortensTheWait(t *testing.T) {
	for name, test := range map[string]struct {
		age, low, high time.Duration
		off            bool
	}{
		"long ago":         {time.Hour, 0, 100 * time.Millisecond, false},
		"some seconds ago": {11 * time.Second, 6500 * time.Millisecond, 7600 * time.Millisecond, false},
		"just now":         {time.Second, 16500 * time.Millisecond, 17600 * time.Millisecond, false},
		"switched off":     {time.Hour, 16500 * time.Millisecond, 17600 * time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b storage.Bucket) {
				meddle(t, b, `{"generation":3,"expires_at":"1999-01-01T00:00:00Z","owner":"host:123"}`)
				began := time.Now()
				a := prepare(t, &aged{Bucket: b, written: began.Add(-test.age)}, "a")
				cfg := leaser.DefaultConfig()
				credit := !test.off
				cfg.AgeCredit = &credit
				a.startWith(cfg)
				defer stopAll(a)
				pass(time.Minute)
				between(t, "take-over", a.when("primary").Sub(began), test.low, test.high)
			})
		})
	}
}

// Get tells when the lock was written, and when that is.
func (a *aged) Get(ctx context.Context, key string, part storage.Range) (io.ReadCloser, storage.Object, error) {
	body, object, err := a.Bucket.Get(ctx, key, part)
	object.ModTime, object.Now = a.written.Add(-100*time.Hour), time.Now().Add(-100*time.Hour)
	return body, object, err
}
