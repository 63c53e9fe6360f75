//go:build e2e

package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
)

// duckdb runs the real DuckDB with its ducklake extension on a catalog.
func duckdb(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(rig.Tool(t, "venv/bin/python"), append([]string{"testdata/ducklake_real.py"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("duckdb %v: %v", args, err)
	}
	return out
}

func TestRealDuckLakeCommitsBesideTheSidecarAndAttachesWhatIsRestored(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	dir := t.TempDir()
	path, data := filepath.Join(dir, "catalog.sqlite"), filepath.Join(dir, "data")
	sidecar := rig.Replicate(t, path, p)
	var done struct {
		Commits, Failed int
		First           []string
	}
	if err := json.Unmarshal(duckdb(t, "write", path, data, "110"), &done); err != nil {
		t.Fatal(err)
	}
	if done.Commits < 110 || done.Failed != 0 {
		t.Fatalf("DuckLake made %d commits and failed in %d: %q", done.Commits, done.Failed, done.First)
	}
	stop(t, sidecar)
	restoresEqual(t, p, path)
	got, want := duckdb(t, "read", rig.Restore(t, p), data), duckdb(t, "read", path, data)
	if string(got) != string(want) || len(got) < 1000 {
		t.Errorf("snapshots and tables of the restored lake:\n%.500s\nwant:\n%.500s", got, want)
	}
}
