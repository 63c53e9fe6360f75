package capture_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/ltx"
)

const fill = "INSERT INTO t SELECT randomblob(900) FROM (WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<2000) SELECT i FROM c)"

// What may happen to a database while nobody captures, and how many pages may
// be uploaded for it at most.
var whileDown = []struct {
	name    string
	queries []string
	pages   int
}{
	{"nothing", nil, 0},
	{"one row", []string{"INSERT INTO t VALUES(1)"}, 4},
	{"TRUNCATE twice", []string{"INSERT INTO t VALUES(1)", "PRAGMA wal_checkpoint(TRUNCATE)", "INSERT INTO t VALUES(2)", "PRAGMA wal_checkpoint(TRUNCATE)"}, 4},
	{"RESTART", []string{"INSERT INTO t VALUES(1)", "PRAGMA wal_checkpoint(RESTART)", "INSERT INTO t VALUES(2)"}, 4},
	{"FULL", []string{"INSERT INTO t VALUES(zeroblob(100000))", "PRAGMA wal_checkpoint(FULL)", "DELETE FROM t WHERE rowid=3"}, 60},
	{"VACUUM", []string{"DELETE FROM t WHERE rowid>100", "VACUUM"}, 40},
	{"grow, shrink, grow", []string{fill, "DELETE FROM t WHERE rowid>100", "VACUUM", fill}, 900},
	{"journal mode and back", []string{"PRAGMA journal_mode=DELETE", "INSERT INTO t VALUES(3)", "PRAGMA journal_mode=WAL"}, 4},
}

func TestOnlyPagesThatDifferAreCapturedAtStart(t *testing.T) {
	for _, tc := range whileDown {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.db")
			db := testdb.Create(t, path, testdb.Options{})
			testdb.Exec(t, db, "CREATE TABLE t(x)", fill)
			m := newModel(t)
			c := capturer(t, path, m)
			step(t, c)
			m.drain(c.Spool())
			shut(t, c)
			base := m.pages
			testdb.Exec(t, db, tc.queries...)
			c = capturer(t, path, m)
			step(t, c)
			m.drain(c.Spool())
			m.endsEqual(c, db, path)
			if n := m.pages - base; n > tc.pages {
				t.Errorf("%d pages of %d captured, want at most %d", n, base, tc.pages)
			}
		})
	}
}

// The same while the capturer runs, on the connections of another process.
func TestTheApplicationMayDoAnythingWhileCaptured(t *testing.T) {
	for _, tc := range whileDown[1:7] {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.db")
			db := testdb.Create(t, path, testdb.Options{})
			testdb.Exec(t, db, "CREATE TABLE t(x)", fill)
			m := newModel(t)
			c := capturer(t, path, m)
			step(t, c)
			for _, q := range tc.queries {
				// A checkpoint that has to wait for our transaction reports that
				// it is busy, which is no error.
				testdb.Exec(t, db, "PRAGMA busy_timeout=1", q)
				step(t, c)
			}
			m.drain(c.Spool())
			m.endsEqual(c, db, path)
		})
	}
}

func TestALostStateDirectoryCostsNothingWhenTheReplicaIsEqual(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)", fill)
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	m.drain(c.Spool())
	shut(t, c)
	if err := os.RemoveAll(capture.StateDir(path)); err != nil {
		t.Fatal(err)
	}
	c = capturer(t, path, m)
	step(t, c)
	m.drain(c.Spool())
	if len(m.files) != 1 {
		t.Errorf("files %v, want only the base", m.files)
	}
	testdb.Exec(t, db, "INSERT INTO t VALUES(1)")
	step(t, c)
	m.drain(c.Spool())
	m.endsEqual(c, db, path)
	if n := len(m.files); n != 2 || m.files[1].Min != 2 {
		t.Errorf("files %v, want the chain to go on", m.files)
	}
}

func TestALostStateDirectoryGetsAFullCopyThatContinuesTheChain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)", fill)
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	m.drain(c.Spool())
	shut(t, c)
	if err := os.RemoveAll(capture.StateDir(path)); err != nil {
		t.Fatal(err)
	}
	testdb.Exec(t, db, "INSERT INTO t VALUES(1)")
	c = capturer(t, path, m)
	step(t, c)
	m.drain(c.Spool())
	m.endsEqual(c, db, path)
	if n := len(m.files); n != 2 || m.files[1].Level != 0 || m.files[1].Min != 2 {
		t.Errorf("files %v, want a level-0 file 2-2", m.files)
	}
}

func TestAReplicaWithoutChecksumsGetsABaseThatStartsTheChain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)", fill)
	m := newModel(t)
	m.tip = capture.Tip{Pos: ltx.Pos{TXID: 7}, PageSize: 4096, Pages: 3}
	c := capturer(t, path, m)
	step(t, c)
	m.drain(c.Spool())
	testdb.Exec(t, db, "INSERT INTO t VALUES(1)")
	step(t, c)
	m.drain(c.Spool())
	m.endsEqual(c, db, path)
	if n := len(m.files); n != 2 || m.files[0].Min != 1 || m.files[0].Max != 8 || m.files[1].Min != 9 {
		t.Errorf("files %v, want a base 1-8 and 9-9", m.files)
	}
}

func TestAPageSizeChangeStartsANewBase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)", fill)
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	m.drain(c.Spool())
	shut(t, c)
	testdb.Exec(t, db, "PRAGMA journal_mode=DELETE", "PRAGMA page_size=8192", "VACUUM", "PRAGMA journal_mode=WAL", "INSERT INTO t VALUES(1)")
	c = capturer(t, path, m)
	step(t, c)
	m.drain(c.Spool())
	m.endsEqual(c, db, path)
	if n := len(m.files); n != 2 || m.files[1].Min != 1 || m.files[1].Max != 2 {
		t.Errorf("files %v, want a second base 1-2", m.files)
	}
}

func TestADoubtFromOutsideIsAnsweredByAComparison(t *testing.T) {
	for _, mode := range []string{"WAL", "DELETE"} {
		path := filepath.Join(t.TempDir(), "app.db")
		db := testdb.Create(t, path, testdb.Options{JournalMode: mode})
		m := newModel(t)
		c := keep(t, path, m)
		step(t, c)
		before := c.Status().Pos
		c.Doubt("somebody says so")
		step(t, c)
		if s := c.Status(); mode == "WAL" && s.Resyncs != 1 || s.Pos != before {
			t.Errorf("%s: %d comparisons, at %v after %v", mode, s.Resyncs, s.Pos, before)
		}
		testdb.Exec(t, db, "CREATE TABLE t(x)")
		step(t, c)
		m.drain(c.Spool())
		m.endsEqual(c, db, path)
	}
}
