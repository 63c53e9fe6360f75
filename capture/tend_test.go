package capture_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

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

// Commits that come faster than copying back and syncing once takes leave no
// quiet instant; on a slow machine they do, and no lock is needed.
func TestAWriterThatLeavesNoQuietInstantIsMadeRoomFor(t *testing.T) {
	load := testdb.Load{Seed: 7, Rate: 4000, Payload: 100}
	const plenty = 64 << 20
	begin := time.Now()
	var largest int64
	s := beside(t, 8<<20, load, func(s capture.Status, wal int64) bool {
		largest = max(largest, wal)
		wait := 15 * time.Second
		if largest > plenty {
			wait = 50 * time.Second
		}
		return s.WriteLocks >= 1 || time.Since(begin) > wait
	})
	if s.WriteLocks == 0 && largest > plenty {
		t.Errorf("the WAL grew to %d bytes without a lock", largest)
	}
}

func TestTheWriteLockIsNeverTakenWhenForbidden(t *testing.T) {
	s := beside(t, 0, testdb.Load{Seed: 8, Payload: 100}, func(_ capture.Status, wal int64) bool { return wal > 20<<20 })
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

// A reader of the application that stands in the WAL makes a restart
// impossible; the lock would stop its writers for nothing.
func TestTheWriteLockIsNotTakenBesideALongReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)", "INSERT INTO t VALUES(1)")
	cfg := capture.DefaultConfig()
	cfg.WALLimit = 8 << 20
	m := newModel(t)
	c := open(t, path, m, cfg)
	step(t, c)
	reader := testdb.Open(t, path)
	testdb.Exec(t, reader, "BEGIN")
	testdb.Number(t, reader, "SELECT count(*) FROM t")
	for range 40 {
		testdb.Exec(t, db, "INSERT INTO t VALUES(randomblob(500000))")
		step(t, c)
		m.drain(c.Spool())
	}
	if n := c.Status().WriteLocks; n != 0 {
		t.Errorf("the write lock was taken %d times", n)
	}
	testdb.Exec(t, reader, "COMMIT")
	m.drain(c.Spool())
	shut(t, c)
	if err := errors.Join(reader.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	m.equals(path)
}

func TestACheckpointOfTheApplicationGetsThrough(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)", "PRAGMA busy_timeout=30000")
	m := newModel(t)
	c := capturer(t, path, m)
	stop := running(t, c, m)
	eventually(t, "base captured", func() bool { return c.Status().Pos.TXID > 0 })
	for _, mode := range []string{"FULL", "RESTART", "TRUNCATE", "TRUNCATE"} {
		testdb.Exec(t, db, "INSERT INTO t VALUES(randomblob(50000))", "DELETE FROM t WHERE rowid % 2")
		var busy, frames, copied int
		if err := db.QueryRow("PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &frames, &copied); err != nil || busy != 0 {
			t.Errorf("%s checkpoint: busy %d, error %v", mode, busy, err)
		}
	}
	stop()
	step(t, c)
	m.drain(c.Spool())
	m.endsEqual(c, db, path)
}
