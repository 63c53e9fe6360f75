//go:build e2e

package e2e_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestSidecarWaitsForADatabaseThatIsAbsentOrEmpty(t *testing.T) {
	t.Parallel()
	for name, content := range map[string][]byte{"absent": nil, "zero bytes": {}} {
		t.Run(name, func(t *testing.T) {
			p := rig.Directory(t)
			path := filepath.Join(t.TempDir(), "live.db")
			if content != nil {
				if err := os.WriteFile(path, content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			sidecar := rig.Replicate(t, path, p)
			rig.Pause(t, 500*time.Millisecond)
			if info, err := os.Stat(path); (content == nil) != os.IsNotExist(err) || (err == nil && info.Size() > 0) {
				t.Errorf("the sidecar made or filled the database: %v, %v", info, err)
			}
			if n := len(p.Files(t)); n != 0 {
				t.Errorf("%d files were uploaded of nothing", n)
			}
			testdb.Create(t, path, testdb.Options{})
			testdb.StartWriter(t, path, modest(50)).Wait(t)
			awaitFile(t, p)
			stop(t, sidecar)
			restoresEqual(t, p, path)
		})
	}
}

func TestRollbackJournalDatabaseIsConvertedWhenNoTransactionIsOpen(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, db := live(t, testdb.Options{JournalMode: "DELETE"})
	commit(t, db, 20)
	testdb.Exec(t, db, "CREATE TABLE held (v)", "BEGIN IMMEDIATE", "INSERT INTO held VALUES (1)")
	sidecar := rig.Replicate(t, path, p)
	rig.Pause(t, time.Second)
	testdb.Exec(t, db, "INSERT INTO held VALUES (2)", "COMMIT")
	awaitFile(t, p)
	testdb.StartWriter(t, path, modest(30)).Wait(t)
	var mode string
	testdb.Number(t, db, "SELECT count(*) FROM held") // an open connection sees the mode when it reads
	if err := db.QueryRowContext(t.Context(), "PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		t.Errorf("journal mode %q (%v), want wal", mode, err)
	}
	stop(t, sidecar)
	restoresEqual(t, p, path)
}

func TestNewCatalogThatWasNeverCheckpointed(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, db := live(t, testdb.Options{})
		testdb.Exec(t, db, "PRAGMA wal_autocheckpoint=0")
		commit(t, db, 30)
		if info, err := os.Stat(path); err != nil || info.Size() > 4096 {
			t.Fatalf("the file has %v bytes (%v), want all of it in the log", info, err)
		}
		rig.ReplicateOnce(t, path, p)
		restoresEqual(t, p, path)
	})
}

func TestEveryPageSizeIsReplicatedAndRestored(t *testing.T) {
	t.Parallel()
	for size := 512; size <= 65536; size *= 2 {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			p := rig.Directory(t)
			path, db := live(t, testdb.Options{PageSize: size})
			commit(t, db, 20)
			sidecar := rig.Replicate(t, path, p)
			awaitFile(t, p)
			testdb.StartWriter(t, path, modest(100)).Wait(t)
			stop(t, sidecar)
			restoresEqual(t, p, path)
			testdb.SameDatabase(t, rig.LitestreamRestore(t, p), path)
		})
	}
}

func TestProcessesThatOpenWriteAndClose(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, db := live(t, testdb.Options{})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var sidecar *rig.Process
	for i := range 100 {
		switch i % 25 {
		case 5:
			sidecar = rig.Replicate(t, path, p)
		case 15:
			sidecar.Kill(t)
		case 18:
			sidecar = rig.Replicate(t, path, p)
		case 24:
			stop(t, sidecar)
		}
		if s := testdb.StartWriter(t, path, modest(1)).Wait(t); s.Newest != int64(i+1) {
			t.Fatalf("commit %d is number %d", i+1, s.Newest)
		}
	}
	rig.ReplicateOnce(t, path, p)
	restoresEqual(t, p, path)
}
