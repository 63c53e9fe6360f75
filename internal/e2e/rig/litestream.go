package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Litestream starts the real litestream on one database, with more lines for
// the top of its configuration.
func Litestream(t testing.TB, db string, p Place, settings string) *Process {
	t.Helper()
	config := filepath.Join(t.TempDir(), "litestream.yml")
	text := fmt.Sprintf("%s\ndbs:\n  - path: %q\n    replica:\n      url: %q\n", settings, db, p.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Start(t, Command{
		Path: Tool(t, "bin/litestream"), Args: []string{"replicate", "-config", config}, Env: p.Env,
	})
}

// LitestreamRestore restores with litestream to a new path, which it returns,
// and fails the test unless that ends well.
func LitestreamRestore(t testing.TB, p Place, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "restored.db")
	if e := TryLitestreamRestore(t, p, out, flags...); e.Code != 0 {
		t.Fatalf("litestream restore exited with %d", e.Code)
	}
	return out
}

// TryLitestreamRestore restores with litestream and returns how it ended.
func TryLitestreamRestore(t testing.TB, p Place, out string, flags ...string) Exit {
	t.Helper()
	args := append([]string{"restore", "-o", out}, flags...)
	return Start(t, Command{
		Path: Tool(t, "bin/litestream"), Args: append(args, p.URL), Env: p.Env,
	}).Wait(t, Limit)
}
