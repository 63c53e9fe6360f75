//go:build bench

package bench_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

const (
	ownTries = 100 // checkpoints of the application
	ownPause = 100 * time.Millisecond
	lockTime = 30 * time.Second // of a writer at full speed
)

// An application that truncates its log now and then, and commits 200 times a
// second meanwhile: a checkpoint that finds somebody in its way is busy, one
// that waits for somebody holds up the commits.
func TestOwnCheckpoints(t *testing.T) {
	server := testbucket.Gateway(t)
	rows := []row{
		{name: "busy without a sidecar", unit: fmt.Sprintf("of %d", ownTries)},
		{name: "busy", unit: fmt.Sprintf("of %d", ownTries)},
		{name: "median without a sidecar", unit: "ms"},
		{name: "median", unit: "ms"},
		{name: "95 of 100 within", unit: "ms"},
		{name: "longest", unit: "ms"},
		{name: "longest commit without a sidecar", unit: "ms"},
		{name: "longest commit", unit: "ms"},
		{name: "database locked", unit: "times", aim: "0"},
	}
	for i, tool := range tools() {
		t.Run(tool.name, func(t *testing.T) {
			for k, v := range measureOwnCheckpoints(t, tool, place(t, server)) {
				rows[k].figures[i] = v
			}
		})
	}
	printTable(t, "TRUNCATE checkpoints of the application at 200 commits/s", rows)
}

func measureOwnCheckpoints(t *testing.T, tool tool, p rig.Place) [9]float64 {
	t.Helper()
	dir := t.TempDir()
	path, other := filepath.Join(dir, "live.db"), filepath.Join(dir, "alone.db")
	testdb.Create(t, path, testdb.Options{})
	testdb.Create(t, other, testdb.Options{})
	alone := ownCheckpoints(t, other)
	sidecar := tool.replicate(t, path, p)
	rig.Pause(t, 3*time.Second) // the base is done
	beside := ownCheckpoints(t, path)
	sidecar.Stop(t, rig.Limit)
	compare(t, tool, p, path)
	return [9]float64{
		float64(alone.busy), float64(beside.busy), milliseconds(alone.took, 50),
		milliseconds(beside.took, 50), milliseconds(beside.took, 95), milliseconds(beside.took, 100),
		float64(alone.writer.Worst.Milliseconds()), float64(beside.writer.Worst.Milliseconds()), float64(beside.writer.Busy),
	}
}

// own is what became of the checkpoints of an application.
type own struct {
	busy   int
	took   []time.Duration
	writer testdb.Summary
}

func ownCheckpoints(t *testing.T, path string) (o own) {
	t.Helper()
	db := testdb.Open(t, path)
	testdb.Exec(t, db, "PRAGMA busy_timeout=1000")
	w := testdb.StartWriter(t, path, testdb.Load{Seed: 1, Rate: 200, Payload: 300, Churn: 2, Body: 600})
	for range ownTries {
		start := time.Now()
		var busy, frames, done int64
		err := db.QueryRowContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &done)
		if err != nil && !testdb.Busy(err) {
			t.Fatal(err)
		}
		if o.took = append(o.took, time.Since(start)); err != nil || busy != 0 {
			o.busy++
		}
		rig.Pause(t, ownPause)
	}
	o.writer = w.Stop(t)
	return o
}

// TestWriteLock shows how long the write lock is held each time, where there is
// no other way to let the log of a writer at full speed start over.
func TestWriteLock(t *testing.T) {
	p := place(t, testbucket.Gateway(t))
	path := filepath.Join(t.TempDir(), "live.db")
	testdb.Create(t, path, testdb.Options{})
	conf := filepath.Join(t.TempDir(), "tidemark.yml")
	text := fmt.Sprintf("addr: 127.0.0.1:0\nsocket: off\ndbs: [{path: %q, replica: {url: %q}}]\n", path, p.URL)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sidecar := rig.Tidemark(t, p.Env, "replicate", "-config", conf)
	rig.Pause(t, 3*time.Second) // the base is done
	w := testdb.StartWriter(t, path, fullSpeed())
	rig.Pause(t, lockTime)
	sum := w.Stop(t)
	histogram := scrape(t, sidecar)
	all := histogram("_count")
	fmt.Printf("\nThe write lock beside one writer at full speed for %v; aim: <= 0.05 s each time\n", lockTime)
	fmt.Printf("%.0f commits/s, the longest %d ms, locked %d times\n", rate(sum), sum.Worst.Milliseconds(), sum.Busy)
	for _, le := range []string{"0.005", "0.01", "0.025", "0.05", "0.1", `\+Inf`} {
		fmt.Printf("held at most %5s s: %.0f of %.0f times\n", le, histogram(fmt.Sprintf(`_bucket{[^}]*le="%s"}`, le)), all)
	}
	fmt.Printf("held for %.1f ms in the mean\n", 1000*histogram("_sum")/max(1, all))
	sidecar.Stop(t, rig.Limit)
	compare(t, tools()[0], p, path)
}

// scrape returns what reads the histogram of the write lock.
func scrape(t *testing.T, sidecar *rig.Process) func(series string) float64 {
	t.Helper()
	var text []byte
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		addr := regexp.MustCompile(`HTTP is answered.* addr=([0-9.:]+)`).FindStringSubmatch(sidecar.Output())
		if addr == nil {
			return errors.New("the sidecar has not said where it answers")
		}
		reply, err := http.Get("http://" + addr[1] + "/metrics")
		if err == nil {
			text, err = io.ReadAll(reply.Body)
			err = errors.Join(err, reply.Body.Close())
		}
		return err
	})
	return func(series string) (v float64) {
		t.Helper()
		m := regexp.MustCompile(`(?m)^tidemark_capture_write_lock_seconds` + series + `[^ \n]* (\S+)$`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("no %s among the metrics:\n%s", series, text)
		}
		if _, err := fmt.Sscan(string(m[1]), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
}
