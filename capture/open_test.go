package capture_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestADatabaseThatIsNotThereYetIsPickedUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	m := newModel(t)
	c := capturer(t, path, m)
	stop := running(t, c, m)
	eventually(t, "waiting", func() bool { return c.Status().State == capture.StateWaiting })
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the database was created: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	step(t, c)
	if s := c.Status(); s.State != capture.StateWaiting || s.LastError != "" {
		t.Errorf("empty file: state %q, error %q", s.State, s.LastError)
	}
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)", "INSERT INTO t VALUES(1)")
	eventually(t, "captured", func() bool { return c.Status().Pos.TXID > 0 })
	stop()
	step(t, c)
	m.drain(c.Spool())
	m.endsEqual(c, db, path)
}

func TestASecondCapturerOfTheSameDatabaseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	m := newModel(t)
	c := capturer(t, path, m)
	_, err := capture.New(path, capture.DefaultConfig(), capture.Options{Tip: m.Tip})
	if !errors.Is(err, capture.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("got %v, want ErrLocked that names process %d", err, os.Getpid())
	}
	shut(t, c)
	shut(t, capturer(t, path, m))
}

func TestWhatIsNoDatabaseIsAnError(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"text.db":  strings.Repeat("hello ", 100),
		"short.db": "SQLite format 3\x00",
		"size.db":  "SQLite format 3\x00\x00\x07" + strings.Repeat("\x02", 200),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		c := capturer(t, path, newModel(t))
		if err := c.Capture(t.Context()); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want an error that names the file", name, err)
		}
		shut(t, c)
	}
}

func TestADirectoryIsNoDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	c := capturer(t, path, newModel(t))
	if err := c.Capture(t.Context()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v, want an error that says what it is", err)
	}
	shut(t, c)
}

func TestASymbolicLinkIsFollowed(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "real.db"), filepath.Join(t.TempDir(), "link.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	m := newModel(t)
	c := capturer(t, link, m)
	step(t, c)
	testdb.Exec(t, db, "INSERT INTO t VALUES(1)")
	step(t, c)
	m.drain(c.Spool())
	m.endsEqual(c, db, path)
}

func TestAReplacedDatabaseIsCompared(t *testing.T) {
	for _, how := range []string{"rename", "delete and create", "copy", "copy over, WAL kept"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			path, other := filepath.Join(dir, "app.db"), filepath.Join(dir, "other.db")
			for i, p := range []string{path, other} {
				db := testdb.Create(t, p, testdb.Options{})
				testdb.Exec(t, db, "CREATE TABLE t(x)", fill, fmt.Sprintf("DELETE FROM t WHERE rowid %% 2 = %d", i))
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
			}
			testdb.Checkpoint(t, other)
			m := newModel(t)
			c := capturer(t, path, m)
			step(t, c)
			replace(t, how, path, other)
			eventually(t, "captured", func() bool { return c.Capture(t.Context()) == nil })
			testdb.StartWriter(t, path, testdb.Load{Commits: 3}).Wait(t)
			step(t, c)
			m.drain(c.Spool())
			shut(t, c)
			m.equals(path)
		})
	}
}

func replace(t *testing.T, how, path, other string) {
	t.Helper()
	var err error
	data, readErr := os.ReadFile(other)
	switch how {
	case "rename":
		err = errors.Join(os.Remove(path+"-wal"), os.Remove(path+"-shm"), os.Rename(other, path))
	case "delete and create":
		err = errors.Join(os.Remove(path+"-wal"), os.Remove(path+"-shm"), os.Remove(path), os.WriteFile(path, data, 0o600))
	case "copy over, WAL kept":
		err = os.WriteFile(path, data, 0o600)
	case "copy":
		err = errors.Join(os.Remove(path+"-wal"), os.Remove(path+"-shm"), os.WriteFile(path, data, 0o600))
	}
	if err := errors.Join(err, readErr); err != nil {
		t.Fatal(err)
	}
}
