package apply_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica/apply"
)

// Who had the database open in WAL mode when it became a copy leaves a WAL.
func TestAWALIsRemovedOnlyIfItHasNoFrames(t *testing.T) {
	s := small(t)
	c := newCopied(t, s.image, s.pos)
	if err := c.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.WriteFile(c.path+suffix, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c.apply(s.exec("DELETE FROM t WHERE id < 9"))
	for _, suffix := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(c.path + suffix); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", suffix, err)
		}
	}
	c.checkSums(s.image, s.pos)
	if err := os.WriteFile(c.path+"-wal", make([]byte, 32+24+1024), 0o644); err != nil {
		t.Fatal(err)
	}
	before := readAside(t, c.path)
	if err := c.Apply(t.Context(), s.exec("DELETE FROM t WHERE id < 12")); !errors.Is(err, apply.ErrForeign) {
		t.Errorf("with frames in a WAL: got %v", err)
	}
	if string(readAside(t, c.path)) != string(before) {
		t.Error("the copy was changed")
	}
	if err := os.Remove(c.path + "-wal"); err != nil {
		t.Fatal(err)
	}
}

func TestFramesThatAreLeftInTheWALAreFoldedIn(t *testing.T) {
	s := small(t)
	testdb.Exec(t, s.db, "PRAGMA wal_autocheckpoint=0", "INSERT INTO t(v) VALUES (5)", "DELETE FROM t WHERE id % 2 = 0")
	file, wal := readAside(t, s.path), readAside(t, s.path+"-wal")
	s.exec("PRAGMA user_version")
	if len(wal) == 0 || bytes.Equal(file, s.image) {
		t.Fatal("the WAL holds nothing of its own")
	}
	dir := t.TempDir()
	c := &copied{t: t, path: filepath.Join(dir, "copy.db"), dir: dir, wantClosed: true}
	if err := os.WriteFile(c.path, s.image, 0o644); err != nil {
		t.Fatal(err)
	}
	c.record(s.pos)
	if err := errors.Join(os.WriteFile(c.path, file, 0o644), os.WriteFile(c.path+"-wal", wal, 0o644)); err != nil {
		t.Fatal(err)
	}
	c.open()
	if c.Pos() != s.pos {
		t.Fatalf("at %v, want %v", c.Pos(), s.pos)
	}
	c.apply(s.exec("INSERT INTO t(v) VALUES (6)"))
	c.release(s.image, s.pos)
}

func TestAWALThatNobodyHasOpenIsNoHindrance(t *testing.T) {
	s := newSource(t, testdb.Options{JournalMode: "DELETE"}, "CREATE TABLE t (id INTEGER PRIMARY KEY, v)")
	c := newCopied(t, s.image, s.pos)
	c.close()
	if err := os.WriteFile(c.path+"-wal", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c.open()
	c.apply(s.exec("INSERT INTO t(v) VALUES (6)"))
	c.close()
	// One with frames is what every other program would take for the newest
	// state, though the file is in rollback-journal mode.
	other := newSource(t, testdb.Options{}, "CREATE TABLE t (id INTEGER PRIMARY KEY, v)")
	testdb.Exec(t, other.db, "PRAGMA wal_autocheckpoint=0", "INSERT INTO t(v) VALUES (5)")
	if err := os.WriteFile(c.path+"-wal", readAside(t, other.path+"-wal"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.open()
	if !c.Pos().IsZero() {
		t.Errorf("at %v", c.Pos())
	}
	f := between(nil, s.image, ltx.Pos{})
	f.Post = s.pos
	if _, err := c.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.apply(f)
	c.release(s.image, s.pos)
}
