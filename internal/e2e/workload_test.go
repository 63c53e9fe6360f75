//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

type workloadSummary struct {
	Commits int     `json:"commits"`
	Locked  int     `json:"locked_errors"`
	Seconds float64 `json:"seconds"`
}

// ducklake applies commits of DuckLake's kind at full speed, each on a
// connection of its own.
func ducklake(t *testing.T, path string) (s workloadSummary) {
	t.Helper()
	cmd := exec.Command("python3", "testdata/ducklake_workload.py", "--db", path, "--commits", "500",
		"--tables", "8", "--journal", "wal", "--seed", "5", "--conn", "per-txn", "--measure", "none")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	if err != nil {
		t.Fatalf("ducklake workload: %v\n%s", err, out)
	}
	return s
}

func TestDuckLakeWritersNeverNoticeTheSidecar(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	alone := filepath.Join(t.TempDir(), "alone.sqlite")
	want := ducklake(t, alone)
	path := filepath.Join(t.TempDir(), "catalog.sqlite")
	sidecar := rig.Replicate(t, path, p)
	got := ducklake(t, path)
	t.Logf("alone %d commits in %.1f s, beside the sidecar in %.1f s", want.Commits, want.Seconds, got.Seconds)
	if got.Locked > want.Locked {
		t.Errorf("%d commits found the database locked, %d without the sidecar", got.Locked, want.Locked)
	}
	stop(t, sidecar)
	testdb.SameDatabase(t, alone, path)
	restoresEqual(t, p, path)
}

// TestContentsOfRealCatalogs replicates all catalogs in one process. They hold
// what the catalogs of DuckLake's own tests hold, in SQLite's layout; see
// testdata/README.md.
func TestContentsOfRealCatalogs(t *testing.T) {
	t.Parallel()
	from, err := filepath.Glob("testdata/catalogs/*.sqlite")
	if err != nil || len(from) == 0 {
		t.Fatalf("catalogs: %v, %v", from, err)
	}
	dir := t.TempDir()
	var dbs strings.Builder
	for _, f := range from {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.Base(f))
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&dbs, "  - path: %s\n    replica:\n      url: file://%s.bucket\n", path, path)
	}
	conf := config(t, "dbs:\n%s", dbs.String())
	if e := rig.Tidemark(t, nil, "replicate", "-once", "-config", conf).Wait(t, rig.Limit); e.Code != 0 {
		t.Fatalf("replicate exited with %d", e.Code)
	}
	for _, f := range from {
		path := filepath.Join(dir, filepath.Base(f))
		restoresEqual(t, rig.Place{URL: "file://" + path + ".bucket", Dir: path + ".bucket"}, path)
		if got, want := describe(t, path), describe(t, f); got != want {
			t.Errorf("%s no longer holds what it did before", path)
		}
	}
}

// describe puts what a database holds into a comparable form.
func describe(t *testing.T, path string) string {
	t.Helper()
	d, err := testdb.Describe(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%+v", d)
}
