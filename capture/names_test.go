package capture_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestAnApplicationThatGoesOnInARemovedWALIsCaptured(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	if err := testdb.Create(t, path, testdb.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	m := newModel(t)
	c := capturer(t, path, m)
	stop := running(t, c, m)
	w := testdb.StartWriter(t, path, testdb.Load{Rate: 50, Payload: 200})
	eventually(t, "captured", func() bool { return c.Status().Pos.TXID > 5 })
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "said so", func() bool {
		s := c.Status()
		return s.State == capture.StateFailing && strings.Contains(s.LastError, path+"-wal was removed")
	})
	at := c.Status().Pos.TXID
	eventually(t, "captured all the same", func() bool { return c.Status().Pos.TXID > at+20 })
	sum := w.Stop(t)
	eventually(t, "well again", func() bool { return c.Status().State == capture.StateCapturing })
	stop()
	eventually(t, "captured to the end", func() bool { return c.Capture(t.Context()) == nil })
	m.drain(c.Spool())
	shut(t, c)
	m.equals(path)
	if n := testdb.Number(t, testdb.Open(t, path), "SELECT max(n) FROM chain"); n != sum.Newest {
		t.Errorf("the database holds %d commits of %d", n, sum.Newest)
	}
}

func TestASpoolFileOrPageSumsThatSomebodyChangesAreNotBelieved(t *testing.T) {
	spooled := func(t *testing.T, path string) string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(capture.StateDir(path), "spool", "*.ltx"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%q, %v", files, err)
		}
		return files[0]
	}
	sums := func(_ *testing.T, path string) string { return filepath.Join(capture.StateDir(path), "sums") }
	for name, damage := range map[string]func(t *testing.T, path string) error{
		"spool file garbled": func(t *testing.T, path string) error {
			return os.WriteFile(spooled(t, path), []byte(strings.Repeat("x", 64)), 0o600)
		},
		"spool file cut":     func(t *testing.T, path string) error { return os.Truncate(spooled(t, path), 99) },
		"spool file removed": func(t *testing.T, path string) error { return os.Remove(spooled(t, path)) },
		"sums cut":           func(t *testing.T, path string) error { return os.Truncate(sums(t, path), 99) },
		"sums garbled": func(t *testing.T, path string) error {
			return os.WriteFile(sums(t, path), []byte(strings.Repeat("x", 5000)), 0o600)
		},
		"sums removed": func(t *testing.T, path string) error { return os.Remove(sums(t, path)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.db")
			db := testdb.Create(t, path, testdb.Options{})
			m := newModel(t)
			c := capturer(t, path, m)
			step(t, c)
			m.drain(c.Spool())
			testdb.Exec(t, db, "CREATE TABLE t(x)")
			step(t, c)
			if err := damage(t, path); err != nil {
				t.Fatal(err)
			}
			if f, ok := c.Spool().Next(); ok && strings.HasPrefix(name, "spool") {
				t.Errorf("%s was handed out", f.Path)
			} else if ok {
				m.apply(f)
				if err := c.Spool().Done(f); err != nil {
					t.Fatal(err)
				}
			}
			testdb.Exec(t, db, "INSERT INTO t VALUES(1)")
			step(t, c)
			m.drain(c.Spool())
			m.endsEqual(c, db, path)
		})
	}
}
