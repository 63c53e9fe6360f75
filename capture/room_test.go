package capture_test

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// A reader of the application keeps the WAL from starting over.
func TestWithoutLimitTheWALGrowsUnlockedAndThatIsSaidOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)", "PRAGMA wal_autocheckpoint=0", "INSERT INTO t VALUES(1)")
	reader := testdb.Open(t, path)
	testdb.Exec(t, reader, "BEGIN")
	testdb.Number(t, reader, "SELECT count(*) FROM t")

	cfg := capture.DefaultConfig()
	cfg.WALLimit = 0
	m, reg := newModel(t), prometheus.NewRegistry()
	var log bytes.Buffer
	c, err := capture.New(path, cfg, capture.Options{
		Tip: m.Tip, Log: slog.New(slog.NewTextHandler(&log, nil)), Metrics: capture.NewMetrics(reg),
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 44 {
		testdb.Exec(t, db, "INSERT INTO t VALUES(randomblob(1000000))")
		step(t, c)
		m.drain(c.Spool()) // or all would be merged again and again
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "wal-limit: 0 forbids") {
		t.Errorf("%d warnings, want one that names wal-limit: %s", n, log.String())
	}
	if over, locks := value(t, reg, "tidemark_capture_wal_over_limit"), value(t, reg, "tidemark_capture_write_locks_total"); over != 1 || locks != 0 {
		t.Errorf("wal_over_limit is %v and write_locks_total %v, want 1 and 0", over, locks)
	}
	testdb.Exec(t, reader, "COMMIT")
	eventually(t, "the WAL starts over", func() bool {
		testdb.Exec(t, db, "INSERT INTO t VALUES(1)")
		step(t, c)
		return value(t, reg, "tidemark_capture_wal_over_limit") == 0
	})
	m.drain(c.Spool())
	shut(t, c)
	if err := errors.Join(reader.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	m.equals(path)
}

// value returns the one value of a metric.
func value(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue() + f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}
