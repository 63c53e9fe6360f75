package s3_test

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/s3"
)

// inUse counts the goroutines and the descriptors of the test.
func inUse(t *testing.T) (goroutines, descriptors int) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return runtime.NumGoroutine(), len(open)
}

func TestFaultyCallsLeaveNothingBehind(t *testing.T) {
	goroutines, descriptors := inUse(t)
	t.Run("faults", func(t *testing.T) { suffer(t, 500) })
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		g, d := inUse(t)
		if g <= goroutines && d <= descriptors {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d goroutines and %d descriptors, before the calls %d and %d", g, d, goroutines, descriptors)
		}
	}
}

// suffer makes calls under changing faults, whatever comes of them.
func suffer(t *testing.T, n int) {
	b, p := furnished(t, testbucket.Gateway(t), "p", "&idle-timeout=100ms", s3.Retry{Attempts: 2})
	faults := []func(){
		p.Drop, p.Stutter, p.CutIdle,
		func() { p.Status(503) },
		func() { p.Hang() },
		func() { p.StallNext(1 << 20) },
		func() { p.Truncate(10) },
		func() { p.CutBodies(3) },
		func() { p.StallBodies(3) },
		func() { p.Replace("<html/>") },
		func() { p.LoseReplies(1 << 20) },
		func() { p.Storm(400, "ExpiredToken") },
	}
	const together = 20
	all := calls()
	for i := 0; i < n; {
		p.Heal()
		faults[i/together%len(faults)]()
		var group errgroup.Group
		for range together {
			c := all[i%len(all)]
			group.Go(func() error {
				_ = c.do(t.Context(), b) // an error or none, both are right
				return nil
			})
			i++
		}
		_ = group.Wait()
	}
}
