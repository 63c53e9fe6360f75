package rig

import (
	"context"
	"testing"
	"time"
)

// Eventually asks check again and again until it returns nil, and fails the
// test with its last error when that does not come within limit.
func Eventually(t testing.TB, limit time.Duration, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within %v: %v", limit, err)
		}
	}
}

// Pause lets the programs run for a while that is part of the test itself,
// such as the time until a kill.
func Pause(t testing.TB, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		t.Fatal(context.Cause(t.Context()))
	}
}
