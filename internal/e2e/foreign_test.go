//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// foreign is a running sidecar of a database that something happens to.
type foreign struct {
	place   rig.Place
	path    string
	sidecar *rig.Process
}

func startForeign(t *testing.T) foreign {
	t.Helper()
	f := foreign{place: rig.Directory(t)}
	path := filepath.Join(t.TempDir(), "live.db")
	testdb.StartWriter(t, path, modest(1)).Wait(t)
	f.path, f.sidecar = path, rig.Replicate(t, path, f.place)
	testdb.StartWriter(t, path, modest(40)).Wait(t)
	awaitFile(t, f.place)
	return f
}

// end makes more commits and expects them in what is restored, while the
// sidecar runs and after it ended well.
func (f foreign) end(t *testing.T) {
	t.Helper()
	want := testdb.StartWriter(t, f.path, modest(20)).Wait(t).Newest
	rig.Eventually(t, rig.Limit, func(ctx context.Context) error {
		out := filepath.Join(t.TempDir(), "restored.db")
		if e := rig.TryRestore(t, f.place, out); e.Code != 0 {
			return fmt.Errorf("restore exited with %d", e.Code)
		}
		l, err := testdb.Verify(ctx, out)
		if err == nil && l.N != want {
			err = fmt.Errorf("restored up to commit %d, want %d", l.N, want)
		}
		return err
	})
	stop(t, f.sidecar)
	restoresEqual(t, f.place, f.path)
}

func TestForeignCheckpointsWhileTheSidecarRuns(t *testing.T) {
	t.Parallel()
	f := startForeign(t)
	db := testdb.Open(t, f.path)
	for _, mode := range []string{"PASSIVE", "FULL", "RESTART", "TRUNCATE"} {
		testdb.Exec(t, db, "PRAGMA busy_timeout=50", "PRAGMA wal_checkpoint("+mode+")")
		commit(t, db, 3)
		testdb.Exec(t, db, "PRAGMA wal_checkpoint("+mode+")")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	f.end(t)
}

func TestJournalModeLeftAndTakenAgain(t *testing.T) {
	t.Parallel()
	f := startForeign(t)
	db := testdb.Open(t, f.path)
	testdb.Exec(t, db, "PRAGMA busy_timeout=100")
	// SQLite refuses while the sidecar is connected; what it does is not ours
	// to say, but nothing may be lost by the attempt.
	_, err := db.ExecContext(t.Context(), "PRAGMA journal_mode=DELETE")
	t.Logf("leaving WAL mode: %v", err)
	commit(t, db, 5)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	f.end(t)
}

func TestAnotherDatabaseCopiedOverTheLiveOne(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(from, to string) error{
		"renamed over it": os.Rename,
		"copied into it":  overwrite,
	} {
		t.Run(name, func(t *testing.T) {
			f := startForeign(t)
			other := filepath.Join(t.TempDir(), "other.db")
			testdb.StartWriter(t, other, testdb.Load{Seed: 77, Commits: 90, Payload: 300, Churn: 3, Body: 400}).Wait(t)
			remove(t, f.path+"-wal", f.path+"-shm")
			if err := replace(other, f.path); err != nil {
				t.Fatal(err)
			}
			f.end(t)
		})
	}
}

// overwrite copies a file into another, which stays the same file.
func overwrite(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
