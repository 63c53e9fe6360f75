//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// nobody is the user of sidecars whose rights matter: root may do everything.
const nobody = 65534

// demote becomes another user and then the program that its arguments name.
const demote = `import os, sys
os.setgroups([]); os.setgid(%[1]d); os.setuid(%[1]d); os.execv(sys.argv[1], sys.argv[1:])`

// startPlain starts the sidecar as a user that permissions bind.
func (v *victim) startPlain(t *testing.T, bin string) {
	t.Helper()
	args := []string{"replicate", v.path, v.place.URL}
	if os.Geteuid() != 0 {
		v.sidecar = rig.Start(t, rig.Command{Path: bin, Args: args})
		return
	}
	args = append([]string{"-c", fmt.Sprintf(demote, nobody), bin}, args...)
	v.sidecar = rig.Start(t, rig.Command{Path: "/usr/bin/env", Args: append([]string{"python3"}, args...)})
}

// openTo lets every user into a folder of the test, and gives it to nobody.
func openTo(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMissingPermissionIsNamedAndItsReturnNoticed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mode os.FileMode
		of   func(path string) string
	}{
		"database that may not be read":  {0o000, func(path string) string { return path }},
		"folder that may not be written": {0o555, filepath.Dir},
		"folder that may not be entered": {0o000, filepath.Dir},
	} {
		t.Run(name, func(t *testing.T) {
			v := plainVictim(t)
			bin := filepath.Join(filepath.Dir(v.place.Dir), "tidemark")
			put(t, os.Getenv("TIDEMARK_BIN"), bin)
			place := test.of(v.path)
			chmod(t, bin, 0o755)
			chmod(t, place, test.mode)
			v.startPlain(t, bin)
			rig.Eventually(t, rig.Limit, func(context.Context) error {
				for line := range strings.Lines(v.sidecar.Output()) {
					if strings.Contains(line, " permission") && strings.Contains(line, place) {
						return nil
					}
				}
				return fmt.Errorf("no error names %s and the permission that is missing: %s", place, v.sidecar.Output())
			})
			chmod(t, place, 0o755)
			v.commit(t, 5)
			v.leave(t)
			v.settled(t)
			stop(t, v.sidecar)
			v.settled(t)
			if n := strings.Count(v.sidecar.Output(), "level=ERROR"); n != 1 {
				t.Errorf("%d errors were logged, want one:\n%s", n, v.sidecar.Output())
			}
		})
	}
}

// plainVictim makes a database of a user that permissions bind.
func plainVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{place: rig.Directory(t), rnd: dice(t)}
	openTo(t, filepath.Dir(v.place.Dir))
	openTo(t, v.place.Dir)
	dir := t.TempDir()
	openTo(t, dir)
	v.path = filepath.Join(dir, "live.db")
	v.lay(t, testdb.Options{})
	v.leave(t)
	if os.Geteuid() == 0 {
		if err := os.Chown(v.path, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
