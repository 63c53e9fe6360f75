package storagetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/storage"
)

const (
	racers     = 32
	raceRounds = 8
)

func raceChecks() []check {
	return []check{
		{"OneOfManyCreatorsWins", raceCreate},
		{"OneOfManySwappersWins", raceSwap},
		{"SwapAndCreateExcludeEachOther", raceMixed},
	}
}

func raceCreate(t *testing.T, b storage.Bucket) {
	for round := range raceRounds {
		race(t, b, fmt.Sprintf("race/create-%d", round), round, func(int) storage.Condition {
			return storage.Condition{Absent: true}
		})
	}
}

func raceSwap(t *testing.T, b storage.Bucket) {
	current := put(t, b, "race/swap", "start")
	for round := range raceRounds {
		current = race(t, b, "race/swap", round, func(int) storage.Condition {
			return storage.Condition{ETag: current.ETag}
		})
	}
}

// raceMixed lets creators of a taken key run among its swappers.
func raceMixed(t *testing.T, b storage.Bucket) {
	current := put(t, b, "race/mixed", "start")
	for round := range raceRounds {
		current = race(t, b, "race/mixed", round, func(i int) storage.Condition {
			if i%2 == 0 {
				return storage.Condition{Absent: true}
			}
			return storage.Condition{ETag: current.ETag}
		})
	}
}

// race starts all racers at once: exactly one may win, every other learns that
// its condition did not hold, and the stored body is the winner's.
func race(t *testing.T, b storage.Bucket, key string, round int, cond func(i int) storage.Condition) storage.Object {
	t.Helper()
	stored := make([]storage.Object, racers)
	errs := make([]error, racers)
	bodies := make([]string, racers)
	start := make(chan struct{})
	var group errgroup.Group
	for i := range racers {
		// Bodies of different sizes finish at different times. An ETag may be
		// the hash of the content, so no round repeats one of another's.
		bodies[i] = strings.Repeat(fmt.Sprintf("racer %02d of round %d for %s\n", i, round, key), 1+i*7)
		group.Go(func() error {
			<-start
			stored[i], errs[i] = b.Put(t.Context(), key, newBody(bodies[i]), cond(i))
			return nil
		})
	}
	close(start)
	_ = group.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Fatalf("%s: racers %d and %d both won", key, winner, i)
		case err == nil:
			winner = i
		case !errors.Is(err, storage.ErrPrecondition):
			t.Errorf("%s: racer %d: got %v, want a failed precondition", key, i, err)
		}
	}
	if winner < 0 {
		t.Fatalf("%s: nobody won", key)
	}
	if got := wantContent(t, b, key, bodies[winner]); got.ETag != stored[winner].ETag {
		t.Fatalf("%s: ETag %s is not the winner's %s", key, got.ETag, stored[winner].ETag)
	}
	return stored[winner]
}
