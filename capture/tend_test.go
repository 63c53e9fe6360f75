package capture_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// beside captures a writer until enough is true, and returns the final status.
func beside(t *testing.T, limit capture.Size, load testdb.Load, enough func(capture.Status, int64) bool) capture.Status {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.db")
	if err := testdb.Create(t, path, testdb.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	cfg := capture.DefaultConfig()
	cfg.WALLimit = limit
	m := newModel(t)
	c := open(t, path, m, cfg)
	stop := running(t, c, m)
	w := testdb.StartWriter(t, path, load)
	eventually(t, "enough written", func() bool {
		info, err := os.Stat(path + "-wal")
		return err == nil && enough(c.Status(), info.Size())
	})
	w.Stop(t)
	stop()
	step(t, c)
	m.drain(c.Spool())
	shut(t, c)
	m.equals(path)
	if n := c.Status().Resyncs; n != 0 {
		t.Errorf("the WAL was lost %d times", n)
	}
	return c.Status()
}

func TestAWriterAtFullSpeedIsMadeRoomFor(t *testing.T) {
	load := testdb.Load{Seed: 7, Payload: 100, Churn: 1, Body: 200}
	beside(t, 8<<20, load, func(s capture.Status, _ int64) bool { return s.WriteLocks >= 1 })
}

func TestTheWriteLockIsNeverTakenWhenForbidden(t *testing.T) {
	load := testdb.Load{Seed: 8, Payload: 100, Churn: 1, Body: 200}
	s := beside(t, 0, load, func(_ capture.Status, wal int64) bool { return wal > 40<<20 })
	if s.WriteLocks != 0 {
		t.Errorf("the write lock was taken %d times", s.WriteLocks)
	}
}

func TestTheWriteLockIsNeverTakenFromASteadyWriter(t *testing.T) {
	load := testdb.Load{Seed: 9, Rate: 100, Payload: 2000, Churn: 3, Body: 6000}
	s := beside(t, 32<<20, load, func(s capture.Status, _ int64) bool { return s.Pos.TXID > 100 })
	if s.WriteLocks != 0 {
		t.Errorf("the write lock was taken %d times", s.WriteLocks)
	}
}
