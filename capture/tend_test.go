package capture_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// written captures a writer until it is done and returns the final status.
func written(t *testing.T, limit capture.Size, load testdb.Load) (capture.Status, int64) {
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
	testdb.StartWriter(t, path, load).Wait(t)
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	stop()
	step(t, c)
	m.drain(c.Spool())
	shut(t, c)
	m.equals(path)
	return c.Status(), info.Size()
}

func TestAWriterAtFullSpeedIsMadeRoomFor(t *testing.T) {
	s, size := written(t, 8<<20, testdb.Load{Seed: 7, Commits: 15000, Payload: 100, Churn: 1, Body: 200})
	if s.WriteLocks == 0 || s.Resyncs != 0 {
		t.Errorf("the write lock was taken %d times, with %d resyncs", s.WriteLocks, s.Resyncs)
	}
	t.Logf("WAL of %d bytes, write lock taken %d times", size, s.WriteLocks)
}

func TestTheWriteLockIsNeverTakenWhenForbidden(t *testing.T) {
	s, size := written(t, 0, testdb.Load{Seed: 8, Commits: 15000, Payload: 100, Churn: 1, Body: 200})
	if s.WriteLocks != 0 || s.Resyncs != 0 {
		t.Errorf("the write lock was taken %d times, with %d resyncs", s.WriteLocks, s.Resyncs)
	}
	t.Logf("WAL of %d bytes", size)
}

func TestTheWriteLockIsNeverTakenFromASteadyWriter(t *testing.T) {
	s, size := written(t, 32<<20, testdb.Load{Seed: 9, Rate: 100, Commits: 600, Payload: 2000, Churn: 3, Body: 6000})
	if s.WriteLocks != 0 || s.Resyncs != 0 {
		t.Errorf("the write lock was taken %d times, with %d resyncs", s.WriteLocks, s.Resyncs)
	}
	t.Logf("WAL of %d bytes", size)
}
