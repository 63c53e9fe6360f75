//go:build e2e

package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestApplicationCheckpointsWhileTheSidecarIsDown(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, db := live(t, testdb.Options{})
		commit(t, db, 20)
		for _, marks := range [][]string{
			{"FULL"}, {"RESTART"}, {"TRUNCATE"}, {"RESTART", "RESTART"}, {"TRUNCATE", "TRUNCATE"},
		} {
			sidecar := rig.Replicate(t, path, p)
			awaitFile(t, p)
			commit(t, db, 5)
			sidecar.Kill(t)
			for _, mode := range marks {
				commit(t, db, 60)
				testdb.Exec(t, db, fmt.Sprintf("PRAGMA wal_checkpoint(%s)", mode))
			}
			commit(t, db, 10)
			sidecar = rig.Replicate(t, path, p)
			commit(t, db, 3)
			stop(t, sidecar)
			restoresEqual(t, p, path)
		}
	})
}

func TestDatabaseThatShrinksAndGrows(t *testing.T) {
	t.Parallel()
	for _, vacuum := range []string{"NONE", "FULL", "INCREMENTAL"} {
		t.Run(vacuum, func(t *testing.T) {
			p := rig.Directory(t)
			path, db := live(t, testdb.Options{AutoVacuum: vacuum})
			sidecar := rig.Replicate(t, path, p)
			for range 3 {
				testdb.Exec(t, db, "CREATE TABLE tall (b)",
					"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 100) INSERT INTO tall SELECT randomblob(4000) FROM n",
					"DELETE FROM tall WHERE rowid > 10", "PRAGMA incremental_vacuum", "VACUUM", "DROP TABLE tall")
				commit(t, db, 5)
			}
			testdb.Exec(t, db, "VACUUM")
			stop(t, sidecar)
			restoresEqual(t, p, path)
		})
	}
}

func TestReplicationGoesOnAtTheNextTXIDAfterARestore(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		for round, commits := range []int64{1, 5, 100} {
			path := filepath.Join(t.TempDir(), "live.db")
			if round > 0 {
				restored := rig.Restore(t, p)
				if err := os.Rename(restored, path); err != nil {
					t.Fatal(err)
				}
				rig.ReplicateOnce(t, path, p) // before the application writes
			}
			before := p.Newest(t)
			sidecar := rig.Replicate(t, path, p)
			db := testdb.Open(t, path)
			commit(t, db, commits)
			awaitTXID(t, p, before+1)
			stop(t, sidecar)
			restoresEqual(t, p, path)
			if round > 0 && len(p.Level(t, 9)) > 1 {
				t.Errorf("a full copy was uploaded after the restore: %v", p.Files(t))
			}
		}
	})
}

func TestApplicationWritesToARestoredDatabaseBeforeTheSidecarStarts(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, db := live(t, testdb.Options{})
		commit(t, db, 10)
		rig.ReplicateOnce(t, path, p)
		for range 3 {
			path = rig.Restore(t, p)
			before := p.Newest(t)
			testdb.StartWriter(t, path, modest(7)).Wait(t)
			rig.ReplicateOnce(t, path, p)
			if n := p.Newest(t); n != before+1 {
				t.Errorf("the newest TXID is %d, want %d", n, before+1)
			}
			restoresEqual(t, p, path)
		}
	})
}

func TestSecondStartAfterTheDatabaseWasDeletedAndRestored(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, db := live(t, testdb.Options{})
	commit(t, db, 40)
	rig.ReplicateOnce(t, path, p)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	// The state directory stays: it belongs to a file that is gone.
	remove(t, path, path+"-wal", path+"-shm")
	if err := os.Rename(rig.Restore(t, p), path); err != nil {
		t.Fatal(err)
	}
	before := p.Newest(t)
	sidecar := rig.Replicate(t, path, p)
	testdb.StartWriter(t, path, modest(20)).Wait(t)
	awaitTXID(t, p, before+1)
	stop(t, sidecar)
	restoresEqual(t, p, path)
}

func TestDatabaseReplacedByAnotherWhileTheSidecarIsDown(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, db := live(t, testdb.Options{})
	commit(t, db, 40)
	rig.ReplicateOnce(t, path, p)
	other, db2 := live(t, testdb.Options{})
	commit(t, db2, 90)
	if err := errors.Join(db.Close(), db2.Close()); err != nil {
		t.Fatal(err)
	}
	remove(t, path, path+"-wal", path+"-shm")
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	rig.ReplicateOnce(t, path, p)
	restoresEqual(t, p, path)
}
