package capture_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// large makes a database of some hundred pages in a directory, which nobody has
// open.
func large(t *testing.T, dir, mode string) string {
	t.Helper()
	path := filepath.Join(dir, "app.db")
	db := testdb.Create(t, path, testdb.Options{JournalMode: mode})
	testdb.Exec(t, db, "CREATE TABLE t(x)", fill, fill)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// round proves a database from one page on to its end, and returns the slices
// that it took, or the page where it stopped.
func round(ctx context.Context, c *capture.Capturer, at uint32, bytes int64) (slices int, stopped uint32, err error) {
	for {
		next, err := c.Prove(ctx, at, bytes)
		if slices++; err != nil || next == 0 {
			return slices, next, err
		}
		at = next
	}
}

func TestEveryPageIsProvenWhileWritersGoOn(t *testing.T) {
	for _, mode := range []string{"WAL", "DELETE"} {
		t.Run(mode, func(t *testing.T) {
			path := large(t, t.TempDir(), mode)
			m := newModel(t)
			c := keep(t, path, m)
			stop := running(t, c, m)
			w := testdb.StartWriter(t, path, testdb.Load{Rate: map[string]float64{"WAL": 100, "DELETE": 2}[mode], Payload: 300, Churn: 3, Body: 3000})
			for range 3 {
				at := uint32(1)
				eventually(t, "a whole round", func() bool {
					next, err := c.Prove(t.Context(), at, 1<<18)
					if errors.Is(err, capture.ErrDiffers) {
						t.Fatal(err)
					}
					at = next
					return at == 0
				})
			}
			w.Stop(t)
			stop()
			step(t, c)
			if slices, _, err := round(t.Context(), c, 1, 1<<18); err != nil || slices < 6 {
				t.Errorf("%d slices, %v", slices, err)
			}
			m.drain(c.Spool())
			shut(t, c)
			m.equals(path)
		})
	}
}

func TestAPageThatRottedIsFoundAndCapturedAgain(t *testing.T) {
	for _, mode := range []string{"WAL", "DELETE"} {
		t.Run(mode, func(t *testing.T) {
			path := large(t, testdb.MemoryDir(t), mode)
			flip := testdb.Rot(t, path, 300*4096+77)
			m := newModel(t)
			c := keep(t, path, m)
			step(t, c)
			flip()
			step(t, c)
			m.drain(c.Spool())
			if len(m.files) != 1 {
				t.Fatalf("%d files although nothing tells of the change", len(m.files))
			}
			_, at, err := round(t.Context(), c, 0, 1<<18)
			if !errors.Is(err, capture.ErrDiffers) || !strings.Contains(err.Error(), path) || at != 301 {
				t.Fatalf("stopped at page %d: %v", at, err)
			}
			step(t, c)
			if _, _, err := round(t.Context(), c, at, 1<<18); err != nil {
				t.Errorf("after it was mended: %v", err)
			}
			before := m.pages
			m.drain(c.Spool())
			if n := m.pages - before; n != 1 {
				t.Errorf("%d pages were captured, want the one", n)
			}
			shut(t, c)
			m.equals(path)
		})
	}
}

func TestPageSumsThatRottedAreFoundAndMadeAnew(t *testing.T) {
	path := large(t, t.TempDir(), "WAL")
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	m.drain(c.Spool())
	sums := filepath.Join(capture.StateDir(path), "sums")
	info, err := os.Stat(sums)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(sums, os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt([]byte("broken"), 4096+8*300)
	}
	if err = errors.Join(err, f.Close(), os.Chtimes(sums, time.Time{}, info.ModTime())); err != nil {
		t.Fatal(err)
	}
	if _, at, err := round(t.Context(), c, 1, 1<<18); !errors.Is(err, capture.ErrDiffers) || at != 301 {
		t.Fatalf("stopped at page %d: %v", at, err)
	}
	step(t, c)
	if _, _, err := round(t.Context(), c, 1, 1<<18); err != nil {
		t.Error(err)
	}
	m.drain(c.Spool())
	if len(m.files) != 1 {
		t.Errorf("%d files, want the base alone: nothing is wrong with the database", len(m.files))
	}
	shut(t, c)
	m.equals(path)
}

func TestAProofEndsWhereADatabaseHasShrunk(t *testing.T) {
	path := large(t, t.TempDir(), "WAL")
	db := testdb.Open(t, path)
	c := capturer(t, path, newModel(t))
	next, err := c.Prove(t.Context(), 1, 1<<18)
	if err != nil || next != 65 {
		t.Fatalf("page %d, %v", next, err)
	}
	testdb.Exec(t, db, "DELETE FROM t", "VACUUM")
	if next, err = c.Prove(t.Context(), next, 1<<18); err != nil || next != 0 {
		t.Errorf("page %d, %v", next, err)
	}
	shut(t, c)
}

func TestAProofOfNoDatabaseSaysSo(t *testing.T) {
	c := capturer(t, filepath.Join(t.TempDir(), "app.db"), newModel(t))
	if _, err := c.Prove(t.Context(), 1, 1); !errors.Is(err, capture.ErrNotOpen) {
		t.Errorf("got %v", err)
	}
	shut(t, c)
}
