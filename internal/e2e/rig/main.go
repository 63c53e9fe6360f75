// Package rig runs the real programs for end-to-end tests and benchmarks: the
// tidemark binary, a litestream to compare with, and buckets that both of them
// use. It sees them from outside only, as processes, files and requests.
package rig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testdb"
)

// binaryEnv names a tidemark binary to test instead of a fresh build.
const binaryEnv = "TIDEMARK_BIN"

// Main is TestMain: it lets the test binary be a writer or a launcher, and builds
// tidemark.
func Main(m *testing.M) {
	testdb.RunWriter()
	launch()
	testdb.ChildrenHangUp()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	if os.Getenv(binaryEnv) != "" {
		return m.Run(), nil
	}
	dir, err := os.MkdirTemp("", "tidemark-e2e-")
	if err != nil {
		return 1, err
	}
	bin := filepath.Join(dir, "tidemark")
	out, err := exec.Command("go", "build", "-o", bin, "github.com/tidemark-io/tidemark/cmd/tidemark").CombinedOutput()
	if err != nil {
		return 1, errors.Join(fmt.Errorf("build tidemark: %w\n%s", err, out), os.RemoveAll(dir))
	}
	if err := os.Setenv(binaryEnv, bin); err != nil {
		return 1, err
	}
	code := m.Run()
	return code, os.RemoveAll(dir)
}

// Tool returns the path of a program that `make tools` put under .cache, and
// fails the test where it is missing.
func Tool(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(Root(t), ".cache", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v; run `make tools` first", err)
	}
	return path
}

// Root returns the top folder of the repository.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = up
	}
}
