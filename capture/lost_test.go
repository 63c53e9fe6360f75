package capture_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestAStateDirectoryRemovedInUseIsMadeAnew(t *testing.T) {
	for name, lose := range map[string]func(dir string) error{
		"all of it":  os.RemoveAll,
		"the lock":   func(dir string) error { return os.Remove(filepath.Join(dir, "lock")) },
		"the sums":   func(dir string) error { return os.Remove(filepath.Join(dir, "sums")) },
		"the spool":  func(dir string) error { return os.RemoveAll(filepath.Join(dir, "spool")) },
		"a new file": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.db")
			db := testdb.Create(t, path, testdb.Options{})
			testdb.Exec(t, db, "CREATE TABLE t(x)")
			m := newModel(t)
			c := capturer(t, path, m)
			stop := running(t, c, m)
			eventually(t, "captured and uploaded", func() bool {
				waiting, _ := c.Spool().Size()
				return c.Status().Pos.TXID > 0 && waiting == 0
			})
			if err := lose(capture.StateDir(path)); err != nil {
				t.Fatal(err)
			}
			at := c.Status().Pos.TXID
			testdb.Exec(t, db, "INSERT INTO t VALUES(1)")
			eventually(t, "captured after the loss", func() bool { return c.Status().Pos.TXID > at && c.Status().LastError == "" })
			stop()
			step(t, c)
			m.drain(c.Spool())
			m.endsEqual(c, db, path)
		})
	}
}

func TestAStateDirectoryThatCannotBeMadeAnewYetIsTriedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	m.drain(c.Spool())
	dir := capture.StateDir(path)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	// A file where a directory must be.
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "spool"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Capture(t.Context()); err == nil || !strings.Contains(err.Error(), "spool") {
			t.Errorf("got %v", err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "spool")); err != nil {
		t.Fatal(err)
	}
	testdb.Exec(t, db, "CREATE TABLE t(x)")
	step(t, c)
	m.drain(c.Spool())
	m.endsEqual(c, db, path)
}

func TestAnUploadUnderWayIsWaitedForWhenTheStateIsLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	m.drain(c.Spool())
	testdb.Exec(t, db, "CREATE TABLE t(x)")
	step(t, c)
	f, ok := c.Spool().Next()
	if !ok {
		t.Fatal("no file")
	}
	if err := os.Rename(f.Path, f.Path+".moved"); err != nil {
		t.Fatal(err)
	}
	under := f
	under.Path = filepath.Join(t.TempDir(), "under-way")
	if err := os.Rename(f.Path+".moved", under.Path); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(capture.StateDir(path)); err != nil {
		t.Fatal(err)
	}
	if err := c.Capture(t.Context()); err == nil || !strings.Contains(err.Error(), "under way") {
		t.Errorf("captured beside an upload: %v", err)
	}
	m.apply(under)
	if err := c.Spool().Done(f); err != nil {
		t.Error(err)
	}
	testdb.Exec(t, db, "INSERT INTO t VALUES(1)")
	step(t, c)
	m.drain(c.Spool())
	m.endsEqual(c, db, path)
}

func TestWhoeverTakesTheStateAfterItWasRemovedKeepsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	m.drain(c.Spool())
	if err := os.RemoveAll(capture.StateDir(path)); err != nil {
		t.Fatal(err)
	}
	other := capturer(t, path, m)
	step(t, other)
	testdb.Exec(t, db, "CREATE TABLE t(x)")
	if err := c.Capture(t.Context()); !errors.Is(err, capture.ErrLocked) {
		t.Errorf("the first one went on: %v", err)
	}
	shut(t, c)
	step(t, other)
	m.drain(other.Spool())
	m.endsEqual(other, db, path)
}
