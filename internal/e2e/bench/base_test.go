//go:build bench

package bench_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

const (
	megabyte = 1 << 20
	baseSize = 500 * megabyte
	minute   = time.Minute
)

// fill makes a database of rows as applications keep them: ids, names from a
// few, numbers, and a token that does not compress. LZ4 halves its pages.
func fill(t testing.TB, path string, size int64) {
	t.Helper()
	db := testdb.Create(t, path, testdb.Options{JournalMode: "OFF"})
	testdb.Exec(t, db, "PRAGMA synchronous=OFF", "PRAGMA cache_size=-100000", `CREATE TABLE orders (
		id INTEGER PRIMARY KEY, customer TEXT, region TEXT, status TEXT, body TEXT, token BLOB)`)
	for testdb.Number(t, db, "PRAGMA page_count")*4096 < size {
		testdb.Exec(t, db, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 50000)
			INSERT INTO orders (customer, region, status, body, token) SELECT
				'customer-' || (i % 977), 'region-' || (i % 7), iif(i % 3, 'delivered', 'in transit'),
				'{"order_id":' || i || ',"warehouse":"north-' || (i % 5) || '","currency":"EUR","amount":' || abs(random() % 100000) ||
				',"created_at":"2026-03-0' || (i % 9 + 1) || 'T10:00:00Z","note":"leave at the front door"}',
				randomblob(90) FROM n`)
	}
	testdb.Exec(t, db, "PRAGMA journal_mode=WAL")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestBase(t *testing.T) {
	server := testbucket.Gateway(t)
	rows := []row{
		{name: "500 MB database first restorable", unit: "s", aim: ">= 3 x sooner"},
		{name: "uploaded in the first minute", unit: "MB", aim: "1 x the compressed size"},
		{name: "restore", unit: "s", aim: ">= 4 x faster"},
		{name: "peak memory of the sidecar", unit: "MB", aim: "< 150 MB"},
		{name: "peak memory of the restore", unit: "MB", aim: "< 200 MB"},
	}
	for i, tool := range tools() {
		t.Run(tool.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "live.db")
			fill(t, path, baseSize)
			for k, v := range measureBase(t, tool, path, place(t, server)) {
				rows[k].figures[i] = v
			}
		})
	}
	printTable(t, "A database of 500 MB that is new to the sidecar, on S3", rows)
}

func measureBase(t *testing.T, tool tool, path string, p rig.Place) [5]float64 {
	t.Helper()
	start := time.Now()
	sidecar := tool.replicate(t, path, p)
	var restorable time.Time
	rig.Eventually(t, 5*minute, func(context.Context) error {
		restorable = firstRestorable(p.Meter.Requests())
		if restorable.IsZero() {
			return errors.New("no file that starts at TXID 1 is stored")
		}
		return nil
	})
	rig.Pause(t, time.Until(start.Add(minute)))
	up := p.Uploaded(t)
	ended := sidecar.Stop(t, rig.Limit)
	out := filepath.Join(t.TempDir(), "restored.db")
	e := tool.restore(t, p, out)
	if e.Code != 0 {
		t.Fatalf("restore exited with %d", e.Code)
	}
	testdb.Checkpoint(t, path)
	testdb.Checkpoint(t, out)
	testdb.SamePages(t, out, path, 4096)
	return [5]float64{
		restorable.Sub(start).Seconds(), float64(up) / megabyte, e.Took.Seconds(),
		float64(ended.Peak) / megabyte, float64(e.Peak) / megabyte,
	}
}

// firstRestorable returns when the first file that starts at TXID 1 was whole
// on the server.
func firstRestorable(requests []rig.Request) time.Time {
	for _, r := range requests {
		if r.Stored() && strings.Contains(r.Path, "/0000000000000001-") {
			return r.Done
		}
	}
	return time.Time{}
}
