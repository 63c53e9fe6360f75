//go:build bench

package bench_test

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// Rounds of the writer alone and beside the sidecar take turns, so that what
// else the machine does meets both.
const (
	speedRounds = 3
	speedTime   = 4 * time.Second
)

// fullSpeed is one writer that commits as fast as it can.
func fullSpeed() testdb.Load { return testdb.Load{Seed: 1, Payload: 100} }

func TestFullSpeed(t *testing.T) {
	server := testbucket.Gateway(t)
	rows := []row{
		{name: "writer alone", unit: "commits/s", more: true},
		{name: "writer beside the sidecar", unit: "commits/s", more: true},
		{name: "the writer loses", unit: "%", aim: "<= 10 %"},
		{name: "longest commit beside the sidecar", unit: "ms"},
		{name: "database locked", unit: "times", aim: "0"},
		{name: "peak size of the log", unit: "MB", aim: "<= 40 MB"},
		{name: "size of the database", unit: "MB"},
		{name: "peak memory of the sidecar", unit: "MB", aim: "< 150 MB"},
		{name: "final sync and exit", unit: "s"},
	}
	for i, tool := range tools() {
		t.Run(tool.name, func(t *testing.T) {
			for k, v := range measureSpeed(t, tool, place(t, server)) {
				rows[k].figures[i] = v
			}
		})
	}
	printTable(t, "One writer at full speed, in turns of 4 s alone and beside the sidecar", rows)
}

func measureSpeed(t *testing.T, tool tool, p rig.Place) [9]float64 {
	t.Helper()
	dir := t.TempDir()
	path, other := filepath.Join(dir, "live.db"), filepath.Join(dir, "alone.db")
	testdb.Create(t, path, testdb.Options{})
	testdb.Create(t, other, testdb.Options{})
	sidecar := tool.replicate(t, path, p)
	rig.Pause(t, 3*time.Second) // the base is done
	var alone, beside testdb.Summary
	var log int64
	for range speedRounds {
		sum, _ := speed(t, other)
		alone = add(alone, sum)
		sum, size := speed(t, path)
		beside, log = add(beside, sum), max(log, size)
	}
	start := time.Now()
	ended := sidecar.Stop(t, 3*rig.Limit)
	took := time.Since(start)
	compare(t, tool, p, path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	before, after := rate(alone), rate(beside)
	return [9]float64{
		before, after, 100 * (before - after) / before, float64(beside.Worst.Milliseconds()), float64(beside.Busy),
		float64(log) / megabyte, float64(info.Size()) / megabyte, float64(ended.Peak) / megabyte, took.Seconds(),
	}
}

func add(a, b testdb.Summary) testdb.Summary {
	return testdb.Summary{
		Commits: a.Commits + b.Commits, Busy: a.Busy + b.Busy, Worst: max(a.Worst, b.Worst), Took: a.Took + b.Took,
	}
}

func rate(s testdb.Summary) float64 { return float64(s.Commits) / s.Took.Seconds() }

// speed runs a writer of its own process and returns what it did and how
// large the log grew.
func speed(t *testing.T, path string) (testdb.Summary, int64) {
	t.Helper()
	w := testdb.StartWriter(t, path, fullSpeed())
	var done atomic.Bool
	var peak int64
	var group errgroup.Group
	group.Go(func() error {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for ; !done.Load(); <-tick.C {
			if info, err := os.Stat(path + "-wal"); err == nil {
				peak = max(peak, info.Size())
			}
		}
		return nil
	})
	rig.Pause(t, speedTime)
	sum := w.Stop(t)
	done.Store(true)
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return sum, peak
}
