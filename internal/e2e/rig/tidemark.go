package rig

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Tidemark starts the tidemark binary.
func Tidemark(t testing.TB, env []string, args ...string) *Process {
	t.Helper()
	return Start(t, Command{Path: os.Getenv(binaryEnv), Args: args, Env: env})
}

// Replicate starts a sidecar for one database.
func Replicate(t testing.TB, db string, p Place, flags ...string) *Process {
	t.Helper()
	args := append([]string{"replicate"}, flags...)
	return Tidemark(t, p.Env, append(args, db, p.URL)...)
}

// Limit is how long any one step may take before a test calls it hung.
const Limit = 90 * time.Second

// ReplicateOnce uploads what the database holds and fails the test unless
// that ends well.
func ReplicateOnce(t testing.TB, db string, p Place) {
	t.Helper()
	if e := Replicate(t, db, p, "-once").Wait(t, Limit); e.Code != 0 {
		t.Fatalf("replicate -once exited with %d", e.Code)
	}
}

// TryRestore runs a restore and returns how it ended.
func TryRestore(t testing.TB, p Place, out string, flags ...string) Exit {
	t.Helper()
	args := append([]string{"restore", "-o", out, "-integrity-check", "full"}, flags...)
	return Tidemark(t, p.Env, append(args, p.URL)...).Wait(t, Limit)
}

// Restore restores to a new path, which it returns, and fails the test unless
// that ends well and leaves nothing but the database and, of an older state,
// the note of its position.
func Restore(t testing.TB, p Place, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "restored.db")
	if e := TryRestore(t, p, out, flags...); e.Code != 0 {
		t.Fatalf("restore exited with %d", e.Code)
	}
	left, err := os.ReadDir(filepath.Dir(out))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if filepath.Ext(f.Name()) != ".db" && f.Name() != ".restored.db-tidemark" {
			t.Errorf("restore left %s behind", f.Name())
		}
	}
	return out
}
