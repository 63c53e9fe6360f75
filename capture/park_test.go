package capture_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// parked closes a capturer once it can be.
func parked(t *testing.T, c *capture.Capturer) capture.Parked {
	t.Helper()
	var p capture.Parked
	eventually(t, "parked", func() bool {
		var ok bool
		var err error
		if p, ok, err = c.Park(t.Context()); err != nil {
			t.Fatal(err)
		}
		return ok
	})
	return p
}

// resumed opens a parked database; the replica must not be asked.
func resumed(t *testing.T, path string, p capture.Parked) *capture.Capturer {
	t.Helper()
	c, err := capture.New(path, capture.DefaultConfig(), capture.Options{
		Log: slog.New(slog.DiscardHandler), Resume: &p,
		Tip: func(context.Context) (capture.Tip, error) { return capture.Tip{}, errors.New("the replica was asked") },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func changed(t *testing.T, p capture.Parked) bool {
	t.Helper()
	is, err := p.Changed()
	if err != nil {
		t.Fatal(err)
	}
	return is
}

func TestAParkedDatabaseGoesOnWithoutAComparison(t *testing.T) {
	for name, c := range map[string]struct {
		connected bool // the application is, while the database is parked
		meanwhile []string
		resyncs   int
	}{
		"nothing":                        {true, nil, 0},
		"nothing, nobody there":          {false, nil, 0},
		"commits":                        {true, []string{"INSERT INTO t VALUES(7)", "INSERT INTO t VALUES(8)"}, 0},
		"commits of a job that leaves":   {false, []string{"INSERT INTO t VALUES(7)"}, 1},
		"commits and a checkpoint":       {true, []string{"INSERT INTO t VALUES(7)", "PRAGMA wal_checkpoint(TRUNCATE)", "INSERT INTO t VALUES(8)"}, 1},
		"two generations of the WAL":     {true, []string{"INSERT INTO t VALUES(7)", "PRAGMA wal_checkpoint(RESTART)", "INSERT INTO t VALUES(8)", "PRAGMA wal_checkpoint(RESTART)", "INSERT INTO t VALUES(9)"}, 1},
		"VACUUM and another journal":     {true, []string{"DELETE FROM t", "VACUUM", "PRAGMA journal_mode=DELETE", "INSERT INTO t VALUES(7)", "PRAGMA journal_mode=WAL", "INSERT INTO t VALUES(8)"}, 1},
		"commits and the WAL is removed": {true, []string{"INSERT INTO t VALUES(7)", "PRAGMA journal_mode=DELETE"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.db")
			db := testdb.Create(t, path, testdb.Options{})
			testdb.Exec(t, db, "CREATE TABLE t(x)", "INSERT INTO t VALUES(1)")
			m := newModel(t)
			first := capturer(t, path, m)
			step(t, first)
			testdb.Exec(t, db, "INSERT INTO t VALUES(2)")
			step(t, first)
			m.drain(first.Spool())
			if !c.connected {
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
			}
			p := parked(t, first)
			if changed(t, p) || p.Pos() != m.tip.Pos || p.Waiting() != 0 {
				t.Errorf("changed %t, at %v, %d files", changed(t, p), p.Pos(), p.Waiting())
			}
			if !c.connected {
				db = testdb.Open(t, path)
			}
			testdb.Exec(t, db, c.meanwhile...)
			if !c.connected {
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if is := changed(t, p); is != (len(c.meanwhile) > 0) {
				t.Errorf("changed: %t", is)
			}
			again := resumed(t, path, p)
			step(t, again)
			if n := again.Status().Resyncs; n != c.resyncs {
				t.Errorf("%d comparisons, want %d", n, c.resyncs)
			}
			m.drain(again.Spool())
			m.endsEqual(again, db, path)
		})
	}
}

func TestADatabaseWithSomethingToCaptureIsNotParked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	testdb.Exec(t, db, "CREATE TABLE t(x)")
	if _, ok, err := c.Park(t.Context()); ok || err != nil {
		t.Errorf("parked: %t, %v", ok, err)
	}
	step(t, c)
	p := parked(t, c)
	if p.Waiting() == 0 {
		t.Error("no file waits for upload")
	}
	again := resumed(t, path, p)
	step(t, again)
	m.drain(again.Spool())
	m.endsEqual(again, db, path)
}

func TestAParkedDatabaseThatIsReplacedOrGoneHasChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)")
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	p := parked(t, c)
	other := filepath.Join(t.TempDir(), "other.db")
	db = testdb.Create(t, other, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE u(x)", "PRAGMA wal_checkpoint(TRUNCATE)")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if !changed(t, p) {
		t.Error("a removed database has not changed")
	}
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	if !changed(t, p) {
		t.Error("a replaced database has not changed")
	}
	again := resumed(t, path, p)
	step(t, again)
	m.drain(again.Spool())
	shut(t, again)
	m.equals(path)
}

func TestALostStateDirectoryOfAParkedDatabaseIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	m.drain(c.Spool())
	p := parked(t, c)
	if err := os.RemoveAll(capture.StateDir(path)); err != nil {
		t.Fatal(err)
	}
	testdb.Exec(t, db, "CREATE TABLE t(x)")
	c, err := capture.New(path, capture.DefaultConfig(), capture.Options{Tip: m.Tip, Log: slog.New(slog.DiscardHandler), Resume: &p})
	if err != nil {
		t.Fatal(err)
	}
	step(t, c)
	m.drain(c.Spool())
	m.endsEqual(c, db, path)
}

func TestAHolderKeepsOthersFromParkedDatabases(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.db")
	testdb.Create(t, path, testdb.Options{})
	m := newModel(t)
	holder, err := capture.Hold(filepath.Join(dir, "holder"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := capture.Hold(filepath.Join(dir, "holder")); !errors.Is(err, capture.ErrLocked) {
		t.Errorf("held twice: %v", err)
	}
	o := capture.Options{Tip: m.Tip, Log: slog.New(slog.DiscardHandler), Holder: holder}
	c, err := capture.New(path, capture.DefaultConfig(), o)
	if err != nil {
		t.Fatal(err)
	}
	step(t, c)
	m.drain(c.Spool())
	p := parked(t, c)
	other := capture.Options{Tip: m.Tip, Log: o.Log}
	if _, err := capture.New(path, capture.DefaultConfig(), other); !errors.Is(err, capture.ErrLocked) || !strings.Contains(err.Error(), "holder") {
		t.Errorf("another one took the parked database: %v", err)
	}
	o.Resume = &p
	if c, err = capture.New(path, capture.DefaultConfig(), o); err != nil {
		t.Fatal(err)
	}
	step(t, c)
	parked(t, c)
	if err := holder.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err = capture.New(path, capture.DefaultConfig(), other); err != nil {
		t.Fatalf("after the holder is gone: %v", err)
	}
	shut(t, c)
}
