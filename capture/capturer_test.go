package capture_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestBaseHoldsCommittedFramesOfTheWAL(t *testing.T) {
	for _, size := range []int{512, 1024, 4096, 65536} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.db")
			db := testdb.Create(t, path, testdb.Options{PageSize: size})
			testdb.Exec(t, db, "PRAGMA wal_autocheckpoint=0", "CREATE TABLE t(x)",
				"INSERT INTO t SELECT randomblob(700) FROM (WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<500) SELECT i FROM c)")
			m := newModel(t)
			c := capturer(t, path, m)
			step(t, c)
			m.drain(c.Spool())
			testdb.Exec(t, db, "INSERT INTO t VALUES(randomblob(9000))", "DELETE FROM t WHERE rowid % 3 = 0", "PRAGMA incremental_vacuum")
			step(t, c)
			m.drain(c.Spool())
			m.endsEqual(c, db, path)
			if n := len(m.files); n != 2 || m.files[0].Level != 9 || m.files[1].Level != 0 {
				t.Errorf("got files %v, want a base and one increment", m.files)
			}
		})
	}
}

func TestEveryCommitOfALiveWriterIsCaptured(t *testing.T) {
	for _, load := range []testdb.Load{
		{Seed: 1, Rate: 200, Commits: 400, Payload: 100, Churn: 3, Body: 3000},
		{Seed: 2, Commits: 2000, Payload: 50, Churn: 2, Body: 500},
		{Seed: 3, Commits: 300, Payload: 50, Churn: 40, Body: 20000, Sync: "FULL"},
	} {
		t.Run(fmt.Sprintf("seed %d", load.Seed), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.db")
			if err := testdb.Create(t, path, testdb.Options{}).Close(); err != nil {
				t.Fatal(err)
			}
			m := newModel(t)
			c := capturer(t, path, m)
			stop := running(t, c, m)
			w := testdb.StartWriter(t, path, load)
			w.Wait(t)
			stop()
			step(t, c)
			m.drain(c.Spool())
			shut(t, c)
			m.equals(path)
			if n := c.Status().Resyncs; n != 0 {
				t.Errorf("the WAL was lost %d times", n)
			}
			t.Logf("%d commits in %d files, %d pages", load.Commits, len(m.files), m.pages)
		})
	}
}

func TestCommitsGetOneFileEachWhileNothingWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)")
	m := newModel(t)
	c := capturer(t, path, m)
	stop := running(t, c, m)
	eventually(t, "base captured", func() bool { return c.Status().Pos.TXID == 1 })
	for i := range 10 {
		testdb.Exec(t, db, "INSERT INTO t VALUES(1)")
		want := i + 2
		eventually(t, "commit captured and taken", func() bool {
			n, _ := c.Spool().Size()
			return int(c.Status().Pos.TXID) >= want && n == 0
		})
		if got := int(c.Status().Pos.TXID); got != want {
			t.Fatalf("TXID %d after %d commits", got, want-1)
		}
	}
	stop()
	m.endsEqual(c, db, path)
}

func TestCommitsBehindAnUploadGatherInOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)")
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	if _, ok := c.Spool().Next(); !ok {
		t.Fatal("no base to upload")
	}
	for range 20 {
		testdb.Exec(t, db, "INSERT INTO t VALUES(randomblob(5000))")
		step(t, c)
	}
	if n, _ := c.Spool().Size(); n != 2 {
		t.Errorf("%d files wait, want the base and one behind it", n)
	}
	m.drain(c.Spool())
	if m.tip.Pos.TXID != 2 {
		t.Errorf("TXID is %s, want 2", m.tip.Pos.TXID)
	}
	m.endsEqual(c, db, path)
}
