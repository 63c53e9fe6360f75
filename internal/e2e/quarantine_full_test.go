//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/quarantine"
)

// commitsOn counts the commits of a database without touching it.
func commitsOn(t *testing.T, path string) int64 {
	t.Helper()
	twin := filepath.Join(t.TempDir(), "twin.db")
	for _, part := range []string{"", "-wal", "-journal"} {
		b, err := os.ReadFile(path + part)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(twin+part, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return testdb.ChainPrefix(t, twin, twin).N
}

func TestAFullDiskLeavesADivergedNodeAsItIs(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	a, b := newPeer(t, "a", p, ""), newPeer(t, "b", p, "")
	dir, limited := smallDisk(t)
	if limited {
		a.dir = dir
	}
	db := testdb.Create(t, a.live(), testdb.Options{})
	commit(t, db, 20)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	a.start(t)
	a.await(t, "primary")
	b.start(t)
	b.awaitCopy(t, a)

	a.proc.Signal(t, syscall.SIGSTOP)
	a.write(t, "live.db", 7) // nobody will ever upload them
	b.await(t, "primary")
	b.write(t, "live.db", 11)
	b.mustSync(t, "live.db")
	full := ""
	if limited {
		full = fill(t, dir)
	}
	a.proc.Signal(t, syscall.SIGCONT)
	if limited {
		rig.Eventually(t, rig.Limit, func(context.Context) error {
			s, err := a.status(t)
			if err == nil && !strings.Contains(s.Databases[0].Error, "no space left") {
				err = fmt.Errorf("it says %+v", s)
			}
			return err
		})
		if s, err := a.status(t); err != nil || s.Lease.Role == "primary" {
			t.Errorf("it says %+v, %v", s, err)
		}
		if n := commitsOn(t, a.live()); n != 27 {
			t.Errorf("the database holds %d commits, want 27", n)
		}
		remove(t, full)
	}
	a.awaitCopy(t, b)
	entries, err := quarantine.List(quarantine.Dir(stateDir(a.live())))
	if err != nil || len(entries) != 1 || entries[0].Problem != "" {
		t.Fatalf("got %+v and %v", entries, err)
	}
	if n := commitsOn(t, entries[0].Database()); n != 27 {
		t.Errorf("set aside are %d commits, want 27", n)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(entries[0].Path), "*.tmp")); err != nil || len(left) > 0 {
		t.Errorf("%q were left, %v", left, err)
	}
	testdb.SameDatabase(t, a.live(), b.live())
	b.isLast(t)
}
