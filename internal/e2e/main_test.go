//go:build e2e

package e2e_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestMain(m *testing.M) {
	runApplication()
	rig.Main(m)
}

// everywhere runs a test in parallel on a directory bucket and on S3.
func everywhere(t *testing.T, test func(t *testing.T, p rig.Place)) {
	for name, place := range map[string]func(testing.TB) rig.Place{"directory": rig.Directory, "S3": rig.S3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, place(t))
		})
	}
}

// live makes a database with an empty chain, in a folder of its own.
func live(t *testing.T, o testdb.Options) (string, *sql.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "live.db")
	return path, testdb.Create(t, path, o)
}

// modest is a writer's load of small mixed commits.
func modest(commits int64) testdb.Load {
	return testdb.Load{Seed: 3, Commits: commits, Payload: 100, Churn: 2, Body: 700}
}

// commit makes n commits on an open database.
func commit(t *testing.T, db *sql.DB, n int64) {
	t.Helper()
	w, err := testdb.NewWriter(t.Context(), db, modest(n))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// end ends a sidecar with SIGTERM, once it heeds that.
func end(t *testing.T, sidecar *rig.Process) rig.Exit {
	t.Helper()
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if !strings.Contains(sidecar.Output(), "started") {
			return errors.New("the sidecar has not said that it started")
		}
		return nil
	})
	return sidecar.Stop(t, rig.Limit)
}

// stop ends a sidecar with SIGTERM, which must be a success.
func stop(t *testing.T, sidecar *rig.Process) rig.Exit {
	t.Helper()
	e := end(t, sidecar)
	if e.Code != 0 {
		t.Fatalf("the sidecar exited with %d after SIGTERM", e.Code)
	}
	return e
}

// restoresEqual restores the newest state and compares it with the database.
func restoresEqual(t *testing.T, p rig.Place, path string) {
	t.Helper()
	testdb.SameDatabase(t, rig.Restore(t, p), path)
}

// stateDir is where a sidecar keeps its state beside the database.
func stateDir(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-tidemark")
}

// remove deletes files and folders.
func remove(t *testing.T, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if err := os.RemoveAll(p); err != nil {
			t.Fatal(err)
		}
	}
}

// wipe deletes a database with everything beside it.
func wipe(t *testing.T, path string) {
	t.Helper()
	remove(t, path, path+"-wal", path+"-shm", path+"-journal", stateDir(path))
}

// config writes a configuration file.
func config(t *testing.T, format string, args ...any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tidemark.yml")
	if err := os.WriteFile(path, fmt.Appendf(nil, format, args...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
