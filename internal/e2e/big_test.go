//go:build e2e

package e2e_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

const (
	megabyte   = 1 << 20
	lockOffset = 1 << 30 // of the page that SQLite never writes
)

// grow adds rows of one megabyte until the database is of the given size.
func grow(t *testing.T, db *sql.DB, pageSize, size int64) {
	t.Helper()
	for testdb.Number(t, db, "PRAGMA page_count")*pageSize < size {
		testdb.Exec(t, db, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 20)
			INSERT INTO big SELECT zeroblob(1000000) FROM n`)
	}
}

func TestDatabaseBeyondTheLockPage(t *testing.T) {
	for _, pageSize := range []int64{4096, 65536} {
		t.Run(fmt.Sprint(pageSize), func(t *testing.T) {
			t.Parallel()
			p := rig.Directory(t)
			path, db := live(t, testdb.Options{PageSize: int(pageSize), JournalMode: "OFF"})
			testdb.Exec(t, db, "PRAGMA synchronous=OFF", "CREATE TABLE big (b)")
			grow(t, db, pageSize, lockOffset-30*megabyte)
			testdb.Exec(t, db, "PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL")

			sidecar := rig.Replicate(t, path, p)
			awaitFile(t, p)
			grow(t, db, pageSize, lockOffset+120*megabyte)
			testdb.Exec(t, db, "UPDATE big SET b = 'short' WHERE rowid % 100 = 7")
			commit(t, db, 50)
			peak := stop(t, sidecar).Peak
			t.Logf("the sidecar took %d MB of memory", peak/megabyte)
			if peak >= 150*megabyte {
				t.Error("want less than 150 MB")
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			compareBig(t, p, path, pageSize)

			// A base of the whole, with the lock page in its middle.
			p = rig.Directory(t)
			remove(t, stateDir(path))
			rig.ReplicateOnce(t, path, p)
			compareBig(t, p, path, pageSize)
		})
	}
}

// compareBig compares page by page; restore itself checked the integrity.
func compareBig(t *testing.T, p rig.Place, path string, pageSize int64) {
	t.Helper()
	out := t.TempDir() + "/restored.db"
	e := rig.TryRestore(t, p, out, "-integrity-check", "quick")
	if e.Code != 0 {
		t.Fatalf("restore exited with %d", e.Code)
	}
	t.Logf("restored in %v with %d MB of memory", e.Took, e.Peak/megabyte)
	if e.Peak >= 200*megabyte {
		t.Errorf("restore took %d MB, want less than 200", e.Peak/megabyte)
	}
	testdb.ChainPrefix(t, out, path)
	testdb.Checkpoint(t, path)
	testdb.Checkpoint(t, out)
	testdb.SamePages(t, out, path, pageSize)
	remove(t, out)
}
