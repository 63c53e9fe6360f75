package capture_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/ltx"
)

func keep(t *testing.T, path string, m *model) *capture.Capturer {
	t.Helper()
	cfg := capture.DefaultConfig()
	cfg.JournalMode = capture.JournalKeep
	return open(t, path, m, cfg)
}

func rollbackDatabase(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.db")
	if err := testdb.Create(t, path, testdb.Options{JournalMode: "DELETE"}).Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// inWAL tells what the header of the file says.
func inWAL(t *testing.T, path string) bool {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || len(b) < 100 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	return b[18] == 2
}

func TestARollbackJournalDatabaseIsSwitchedWhenNoTransactionIsOpen(t *testing.T) {
	path := rollbackDatabase(t)
	db := testdb.Open(t, path)
	testdb.Exec(t, db, "CREATE TABLE t(x)", "BEGIN IMMEDIATE", "INSERT INTO t VALUES(1)")
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	s := c.Status()
	if s.State != capture.StateFailing || s.FailingSince.IsZero() || !strings.Contains(s.LastError, "without open transactions") {
		t.Errorf("with a transaction open: status %+v", s)
	}
	if s.Pos.TXID == 0 || inWAL(t, path) {
		t.Errorf("with a transaction open: captured %s, in WAL %t", s.Pos.TXID, inWAL(t, path))
	}
	testdb.Exec(t, db, "COMMIT")
	step(t, c)
	if s := c.Status(); !s.FailingSince.IsZero() || !inWAL(t, path) {
		t.Errorf("after the transaction: status %+v", s)
	}
	testdb.Exec(t, db, "INSERT INTO t VALUES(2)")
	step(t, c)
	m.drain(c.Spool())
	m.endsEqual(c, db, path)
}

func TestARollbackJournalDatabaseIsCapturedAsItIs(t *testing.T) {
	for _, mode := range []string{"DELETE", "TRUNCATE", "PERSIST", "MEMORY"} {
		t.Run(mode, func(t *testing.T) {
			path := rollbackDatabase(t)
			m := newModel(t)
			c := keep(t, path, m)
			stop := running(t, c, m)
			// The second one finds no waiting tolerable.
			for i := range 2 {
				w := testdb.StartWriter(t, path, testdb.Load{Seed: int64(i), Rate: 100, Commits: 100, Payload: 200, Churn: 3, Body: 3000, Journal: mode, NoWait: i == 1})
				if sum := w.Wait(t); sum.Busy != 0 || sum.Commits != 100 {
					t.Errorf("%d commits, %d times locked", sum.Commits, sum.Busy)
				}
			}
			eventually(t, "captured while it runs", func() bool { return c.Status().Pos.TXID > 1 })
			stop()
			step(t, c)
			m.drain(c.Spool())
			if inWAL(t, path) {
				t.Error("the database was switched to WAL")
			}
			shut(t, c)
			m.equals(path)
		})
	}
}

func TestWhatIsCapturedBetweenTheCommitsOfAFastWriterWasCommitted(t *testing.T) {
	path := rollbackDatabase(t)
	m := newModel(t)
	var states int
	m.applied = func(id ltx.TXID, _ []uint32) {
		if _, err := testdb.Verify(t.Context(), m.file.Name()); err != nil {
			t.Errorf("TXID %s: %v", id, err)
		}
		states++
	}
	c := keep(t, path, m)
	w := testdb.StartWriter(t, path, testdb.Load{Seed: 1, Payload: 100, Churn: 5, Body: 3000, Journal: "DELETE", Sync: "OFF", NoWait: true, Undo: true})
	start := time.Now()
	for enough := false; !enough; {
		_ = c.Capture(t.Context()) // the writer may leave it no pause
		m.drain(c.Spool())
		enough = states > 10 && time.Since(start) > 2*time.Second || time.Since(start) > 10*time.Second
	}
	if sum := w.Stop(t); sum.Busy != 0 || sum.Commits == 0 {
		t.Errorf("%d commits, %d times locked", sum.Commits, sum.Busy)
	}
	t.Logf("%d states", states)
	step(t, c)
	m.drain(c.Spool())
	shut(t, c)
	m.equals(path)
}

func TestADatabaseThatGoesToWALAndBackIsFollowed(t *testing.T) {
	path := rollbackDatabase(t)
	db := testdb.Open(t, path)
	m := newModel(t)
	c := keep(t, path, m)
	for i, q := range []string{
		"CREATE TABLE t(x)", "PRAGMA journal_mode=WAL", "INSERT INTO t VALUES(1)", "INSERT INTO t VALUES(2)",
	} {
		testdb.Exec(t, db, q)
		step(t, c)
		if s := c.Status(); s.State != capture.StateCapturing {
			t.Errorf("step %d: %+v", i, s)
		}
	}
	// Nobody can leave WAL mode beside us, but while we are away.
	shut(t, c)
	testdb.Exec(t, db, "PRAGMA journal_mode=DELETE", "INSERT INTO t VALUES(3)")
	c = keep(t, path, m)
	step(t, c)
	testdb.Exec(t, db, "INSERT INTO t VALUES(4)")
	step(t, c)
	m.drain(c.Spool())
	m.endsEqual(c, db, path)
}

func TestAnApplicationThatInsistsOnItsJournalModeIsLetBe(t *testing.T) {
	path := rollbackDatabase(t)
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	if !inWAL(t, path) {
		t.Fatal("the database was not switched")
	}
	for i := range 3 {
		w := testdb.StartWriter(t, path, testdb.Load{Seed: int64(i), Commits: 5, Journal: "DELETE", NoWait: true})
		if sum := w.Wait(t); sum.Busy != 0 {
			t.Errorf("locked %d times", sum.Busy)
		}
		step(t, c)
		if s := c.Status(); s.State != capture.StateFailing || !strings.Contains(s.LastError, "META_JOURNAL_MODE") {
			t.Errorf("status %+v", s)
		}
	}
	if inWAL(t, path) {
		t.Error("switched once more at once")
	}
	db := testdb.Open(t, path)
	testdb.Exec(t, db, "PRAGMA journal_mode=WAL", "CREATE TABLE t(x)")
	step(t, c)
	if s := c.Status(); s.State != capture.StateCapturing || s.LastError != "" {
		t.Errorf("after the application left it in WAL: %+v", s)
	}
	m.drain(c.Spool())
	m.endsEqual(c, db, path)
}

func TestADatabaseHeldForOneAloneIsSaidToBe(t *testing.T) {
	for _, mode := range []string{"DELETE", "WAL"} {
		t.Run(mode, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.db")
			if err := testdb.Create(t, path, testdb.Options{JournalMode: mode}).Close(); err != nil {
				t.Fatal(err)
			}
			m := newModel(t)
			w := testdb.StartWriter(t, path, testdb.Load{Rate: 50, Exclusive: true})
			eventually(t, "a commit", func() bool {
				info, err := os.Stat(path + map[string]string{"WAL": "-wal", "DELETE": "-journal"}[mode])
				return err == nil && info.Size() > 0
			})
			c := keep(t, path, m)
			err := c.Capture(t.Context())
			if err == nil || !strings.Contains(err.Error(), "locking_mode=EXCLUSIVE") || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v", err)
			}
			if sum := w.Stop(t); sum.Commits == 0 {
				t.Error("the application could not write")
			}
			step(t, c)
			m.drain(c.Spool())
			shut(t, c)
			m.equals(path)
		})
	}
}

func TestAnotherPageSizeBeginsABaseWithoutAWAL(t *testing.T) {
	path := rollbackDatabase(t)
	db := testdb.Open(t, path)
	m := newModel(t)
	c := keep(t, path, m)
	stop := running(t, c, m)
	for i, size := range []int{512, 65536, 4096} {
		at := c.Status().Pos.TXID
		testdb.Exec(t, db, fmt.Sprintf("PRAGMA page_size=%d", size), "VACUUM", fmt.Sprintf("CREATE TABLE t%d(x)", i))
		eventually(t, "captured", func() bool { return c.Status().Pos.TXID > at })
	}
	stop()
	step(t, c)
	m.drain(c.Spool())
	m.endsEqual(c, db, path)
}

func TestATransactionCutOffIsNotCaptured(t *testing.T) {
	path := rollbackDatabase(t)
	m := newModel(t)
	c := keep(t, path, m)
	step(t, c)
	// A journal with nobody who holds the lock is one to be played back.
	journal := path + "-journal"
	if err := os.WriteFile(journal, []byte("\xd9\xd5\x05\xf9 and so on"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Capture(context.Background()); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("got %v", err)
	}
	if err := os.Remove(journal); err != nil {
		t.Fatal(err)
	}
	db := testdb.Open(t, path)
	testdb.Exec(t, db, "CREATE TABLE t(x)", fmt.Sprintf("INSERT INTO t VALUES(%d)", 1))
	step(t, c)
	m.drain(c.Spool())
	m.endsEqual(c, db, path)
}
