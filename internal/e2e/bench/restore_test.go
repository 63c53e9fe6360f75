//go:build bench

package bench_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

const (
	increments    = 1000
	restoreRounds = 2 // in turns; the better one counts
	gigabyte      = 1024 * megabyte
)

func TestRestoreOfIncrements(t *testing.T) {
	rows := []row{
		{name: "restore of 500 MB and 1000 increments", unit: "s", aim: ">= 4 x faster"},
		{name: "peak memory", unit: "MB", aim: "< 150 MB"},
		{name: "requests", unit: ""},
	}
	p := rig.At(t, testbucket.Gateway(t), "increments")
	path := filepath.Join(t.TempDir(), "live.db")
	fill(t, path, baseSize)
	db := testdb.Open(t, path)
	sidecar := unmerged(t, path, p)
	awaitNewest(t, p, 1)
	for i := range increments {
		before := p.Newest(t)
		scatter(t, db, i)
		awaitNewest(t, p, before+1)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	sidecar.Stop(t, rig.Limit)
	testdb.Checkpoint(t, path)
	measureRestores(t, p, path, rows)
	printTable(t, "The newest state of one replica on S3, restored by both", rows)
}

func TestRestoreOfAGigabyte(t *testing.T) {
	rows := []row{
		{name: "restore of 1 GB", unit: "s"},
		{name: "peak memory", unit: "MB", aim: "< 150 MB"},
		{name: "requests", unit: ""},
	}
	p := rig.At(t, testbucket.Gateway(t), "gigabyte")
	path := filepath.Join(t.TempDir(), "live.db")
	fill(t, path, gigabyte)
	if e := rig.Replicate(t, path, p, "-once").Wait(t, 5*minute); e.Code != 0 {
		t.Fatalf("replicate exited with %d", e.Code)
	}
	testdb.Checkpoint(t, path)
	measureRestores(t, p, path, rows)
	printTable(t, "A database of 1 GB from one file on S3, restored by both", rows)
}

// unmerged starts a sidecar that leaves every increment a file of its own.
func unmerged(t *testing.T, path string, p rig.Place) *rig.Process {
	t.Helper()
	config := filepath.Join(t.TempDir(), "tidemark.yml")
	text := fmt.Sprintf("levels: [{interval: 24h}]\ndbs:\n  - path: %q\n    replica: {url: %q}\n", path, p.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return rig.Tidemark(t, p.Env, "replicate", "-config", config, "-log-level", "warn")
}

// scatter is one commit that changes some twenty pages all over the database.
func scatter(t *testing.T, db *sql.DB, i int) {
	t.Helper()
	testdb.Exec(t, db, fmt.Sprintf(`UPDATE orders SET token = randomblob(90) WHERE id IN (
		WITH RECURSIVE n(k) AS (SELECT 0 UNION ALL SELECT k+1 FROM n WHERE k < 19)
		SELECT 1 + (k * 50021 + %d * 7919) %% 1000000 FROM n)`, i))
}

func awaitNewest(t *testing.T, p rig.Place, txid uint64) {
	t.Helper()
	rig.Eventually(t, 5*minute, func(context.Context) error {
		if n := p.Newest(t); n < txid {
			return fmt.Errorf("the newest file has TXID %d, want %d", n, txid)
		}
		return nil
	})
}

// measureRestores lets both tools restore in turns and compares what they made.
func measureRestores(t *testing.T, p rig.Place, path string, rows []row) {
	t.Helper()
	for range restoreRounds {
		for i, tool := range tools() {
			out := filepath.Join(t.TempDir(), "restored.db")
			before := len(p.Meter.Requests())
			e := tool.restore(t, p, out)
			if e.Code != 0 {
				t.Fatalf("%s: restore exited with %d", tool.name, e.Code)
			}
			requests := len(p.Meter.Requests()) - before
			testdb.Checkpoint(t, out)
			testdb.SamePages(t, out, path, 4096)
			if err := os.Remove(out); err != nil {
				t.Fatal(err)
			}
			if took := e.Took.Seconds(); rows[0].figures[i] == 0 || took < rows[0].figures[i] {
				rows[0].figures[i], rows[1].figures[i], rows[2].figures[i] = took, float64(e.Peak)/megabyte, float64(requests)
			}
		}
	}
}
