//go:build bench

package bench_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// A period that is no multiple of a second, so that commits fall on every
// phase of anything that ticks by seconds.
const (
	lagCommits = 40
	lagPeriod  = 1037 * time.Millisecond
)

func TestLag(t *testing.T) {
	server := testbucket.Gateway(t)
	rows := []row{
		{name: "replication lag p50", unit: "ms"},
		{name: "replication lag p95", unit: "ms", aim: "<= 50 ms and a request"},
		{name: "one upload request p95", unit: "ms"},
		{name: "requests a commit", unit: ""},
	}
	for i, tool := range tools() {
		t.Run(tool.name, func(t *testing.T) {
			for k, v := range measureLag(t, tool, place(t, server)) {
				rows[k].figures[i] = v
			}
		})
	}
	printTable(t, "One commit a second, from the end of COMMIT to the answer of the server", rows)
}

// span is when a commit began and ended.
type span struct{ begin, end time.Time }

func measureLag(t *testing.T, tool tool, p rig.Place) [4]float64 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "live.db")
	db := testdb.Create(t, path, testdb.Options{})
	w, err := testdb.NewWriter(t.Context(), db, testdb.Load{Seed: 1, Payload: 300, Churn: 2, Body: 600})
	if err != nil {
		t.Fatal(err)
	}
	sidecar := tool.replicate(t, path, p)
	rig.Eventually(t, minute, func(context.Context) error {
		if len(p.Files(t)) == 0 {
			return errors.New("nothing is stored")
		}
		return nil
	})
	rig.Pause(t, 2*lagPeriod) // what the start brought along is over
	quiet := len(p.Meter.Requests())
	var commits []span
	for range lagCommits {
		begin := time.Now()
		if err := w.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		commits = append(commits, span{begin, time.Now()})
		rig.Pause(t, time.Until(begin.Add(lagPeriod)))
	}
	rig.Pause(t, 2*lagPeriod)
	requests := p.Meter.Requests()[quiet:]
	sidecar.Stop(t, rig.Limit)
	compare(t, tool, p, path)
	lags, uploads := lags(t, commits, requests)
	return [4]float64{
		milliseconds(lags, 50), milliseconds(lags, 95), milliseconds(uploads, 95),
		float64(len(requests)) / lagCommits,
	}
}

// lags returns, for every commit, how long after it the first upload to level
// 0 that began after the commit had begun was answered, and how long those
// uploads took.
func lags(t *testing.T, commits []span, requests []rig.Request) (lags, uploads []time.Duration) {
	t.Helper()
	for _, c := range commits {
		i := slices.IndexFunc(requests, func(r rig.Request) bool {
			return r.Stored() && strings.Contains(r.Path, "/0000/") && r.Start.After(c.begin)
		})
		if i < 0 {
			t.Fatal("a commit was never uploaded")
		}
		lags = append(lags, requests[i].Done.Sub(c.end))
		uploads = append(uploads, requests[i].Done.Sub(requests[i].Start))
	}
	return lags, uploads
}

func milliseconds(ds []time.Duration, percentile int) float64 {
	slices.Sort(ds)
	return float64(ds[(len(ds)-1)*percentile/100]) / float64(time.Millisecond)
}

// compare restores with the tool and compares with the database.
func compare(t *testing.T, tool tool, p rig.Place, path string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "restored.db")
	if e := tool.restore(t, p, out); e.Code != 0 {
		t.Fatalf("restore exited with %d", e.Code)
	}
	testdb.SameDatabase(t, out, path)
}
