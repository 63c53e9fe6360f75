package capture_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// spoiled makes a spool with a base and an increment, damages it and goes on.
func spoiled(t *testing.T, spoil func(t *testing.T, state string)) *model {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)", fill)
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	m.drain(c.Spool())
	testdb.Exec(t, db, "INSERT INTO t VALUES(1)")
	step(t, c)
	shut(t, c)
	spoil(t, capture.StateDir(path))
	testdb.Exec(t, db, "INSERT INTO t VALUES(2)")
	c = capturer(t, path, m)
	step(t, c)
	m.drain(c.Spool())
	testdb.Exec(t, db, "INSERT INTO t VALUES(3)")
	step(t, c)
	m.drain(c.Spool())
	m.endsEqual(c, db, path)
	return m
}

const waiting = "spool/0-0000000000000002-0000000000000002.ltx"

func TestADamagedSpoolOrStateIsMended(t *testing.T) {
	truncate := func(name string, size int64) func(*testing.T, string) {
		return func(t *testing.T, state string) {
			if err := os.Truncate(filepath.Join(state, name), size); err != nil {
				t.Fatal(err)
			}
		}
	}
	flip := func(name string, off int64) func(*testing.T, string) {
		return func(t *testing.T, state string) {
			f, err := os.OpenFile(filepath.Join(state, name), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var b [1]byte
			if _, err := f.ReadAt(b[:], off); err != nil {
				t.Fatal(err)
			}
			b[0] ^= 0x40
			if _, err := f.WriteAt(b[:], off); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(name string) func(*testing.T, string) {
		return func(t *testing.T, state string) {
			if err := os.Remove(filepath.Join(state, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, spoil := range map[string]func(*testing.T, string){
		"file of no bytes":   truncate(waiting, 0),
		"file of 50 bytes":   truncate(waiting, 50),
		"file cut at 200":    truncate(waiting, 200),
		"file with one flip": flip(waiting, 150),
		"file gone":          remove(waiting),
		"sums of no bytes":   truncate("sums", 0),
		"sums cut":           truncate("sums", 5000),
		"sums flipped":       flip("sums", 4099),
		"sums head flipped":  flip("sums", 33),
		"sums position":      flip("sums", 24),
		"sums magic":         flip("sums", 1),
		"sums busy":          flip("sums", 8),
		"sums gone":          remove("sums"),
	} {
		t.Run(name, func(t *testing.T) { spoiled(t, spoil) })
	}
}

func TestAnIntactSpoolGoesOnWithoutACopy(t *testing.T) {
	m := spoiled(t, func(*testing.T, string) {})
	if len(m.files) < 3 || m.files[1].Level != 0 || m.pages > 1000 {
		t.Errorf("files %v of %d pages, want the waiting increment first and no second base", m.files, m.pages)
	}
}

// Page sums left behind by a kill between the spool and the sums are brought
// up to the spool.
func TestOldSumsCatchUpWithTheSpool(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)", fill)
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	m.drain(c.Spool())
	sums := filepath.Join(capture.StateDir(path), "sums")
	old, err := os.ReadFile(sums)
	if err != nil {
		t.Fatal(err)
	}
	testdb.Exec(t, db, "DELETE FROM t WHERE rowid > 50", "VACUUM", "INSERT INTO t VALUES(zeroblob(20000))")
	step(t, c)
	shut(t, c)
	if err := os.WriteFile(sums, old, 0o600); err != nil {
		t.Fatal(err)
	}
	c = capturer(t, path, m)
	step(t, c)
	m.drain(c.Spool())
	m.endsEqual(c, db, path)
	if len(m.files) != 2 {
		t.Errorf("files %v, want base and increment", m.files)
	}
}
