package capture_test

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/ltx"
)

// history is what a model remembers of its files.
type history struct {
	after   map[ltx.TXID]ltx.Checksum
	touched map[ltx.TXID][]uint32
}

func (h *history) Find(_ context.Context, sum ltx.Checksum) (ltx.TXID, error) {
	for _, txid := range slices.Backward(slices.Sorted(maps.Keys(h.after))) {
		if h.after[txid] == sum {
			return txid, nil
		}
	}
	return 0, nil
}

func (h *history) Touched(_ context.Context, after, through ltx.TXID) iter.Seq2[uint32, error] {
	var pages []uint32
	for txid := after + 1; txid <= through; txid++ {
		pages = append(pages, h.touched[txid]...)
	}
	slices.Sort(pages)
	return func(yield func(uint32, error) bool) {
		for _, p := range slices.Compact(pages) {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// remembering makes a model keep the history of what it applies.
func remembering(m *model) *history {
	h := &history{after: map[ltx.TXID]ltx.Checksum{}, touched: map[ltx.TXID][]uint32{}}
	m.applied = func(txid ltx.TXID, pages []uint32) {
		h.after[txid], h.touched[txid] = m.tip.Pos.PostApplyChecksum, pages
	}
	return h
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// comeback is a database that is brought back to an older point.
type comeback struct {
	state bool     // the state directory comes back with it
	later []string // what follows the point that it is brought back to
	since []string // what the application does before we look
}

func TestADatabaseBroughtBackToAnOlderPointGoesOnFromThere(t *testing.T) {
	for name, c := range map[string]comeback{
		"the database alone":          {false, []string{"UPDATE t SET x = 1 WHERE rowid < 10"}, nil},
		"with its state":              {true, []string{"UPDATE t SET x = 1 WHERE rowid < 10"}, nil},
		"with its state, and used":    {true, []string{"UPDATE t SET x = 1 WHERE rowid < 10"}, []string{"INSERT INTO t VALUES(9)"}},
		"from before it grew":         {false, []string{"CREATE TABLE u(x)", "INSERT INTO u SELECT zeroblob(3000) FROM t LIMIT 20"}, nil},
		"from before it shrank":       {false, []string{"DELETE FROM t WHERE rowid > 100", "VACUUM"}, nil},
		"state from before it shrank": {true, []string{"DELETE FROM t WHERE rowid > 100", "VACUUM"}, []string{"INSERT INTO t VALUES(9)"}},
	} {
		t.Run(name, c.test)
	}
}

func (c comeback) test(t *testing.T) {
	dir, old := filepath.Join(t.TempDir(), "live"), filepath.Join(t.TempDir(), "old")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)", fill, "PRAGMA wal_checkpoint(TRUNCATE)")
	closed(t, db)
	m := newModel(t)
	h := remembering(m)
	shut(t, reverting(t, path, m, h))
	copyTree(t, dir, old)
	db = testdb.Open(t, path)
	first := reverting(t, path, m, h)
	for _, q := range c.later {
		testdb.Exec(t, db, q)
		step(t, first)
		m.drain(first.Spool())
	}
	shut(t, first)
	closed(t, db)
	copyTree(t, old, dir)
	if !c.state {
		if err := os.RemoveAll(capture.StateDir(path)); err != nil {
			t.Fatal(err)
		}
	}
	db = testdb.Open(t, path)
	testdb.Exec(t, db, c.since...)
	tip, pages := m.tip.Pos.TXID, m.pages
	again := reverting(t, path, m, h)
	if m.tip.Pos.TXID != tip+1 {
		t.Errorf("went on from TXID %s with %s", tip, m.tip.Pos.TXID)
	}
	if n := m.pages - pages; len(c.later) == 1 && n >= int(m.tip.Pages) {
		t.Errorf("%d of %d pages uploaded", n, m.tip.Pages)
	}
	testdb.Exec(t, db, "INSERT INTO t VALUES(10)")
	step(t, again)
	m.drain(again.Spool())
	m.endsEqual(again, db, path)
}

// reverting is a capturer that knows the history, after its first step.
func reverting(t *testing.T, path string, m *model, h *history) *capture.Capturer {
	t.Helper()
	c, err := capture.New(path, capture.DefaultConfig(), capture.Options{Tip: m.Tip, History: h, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	step(t, c)
	m.drain(c.Spool())
	return c
}

func closed(t *testing.T, db io.Closer) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
