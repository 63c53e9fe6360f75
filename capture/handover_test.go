package capture_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/ltx"
)

const node = 7<<32 | 0xabc

// holding opens a capturer whose spool keeps what is uploaded.
func holding(t *testing.T, path string, m *model) *capture.Capturer {
	t.Helper()
	c, err := capture.New(path, capture.DefaultConfig(), capture.Options{Tip: m.Tip, Log: slog.New(slog.DiscardHandler), NodeID: node, KeepUploaded: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tail(t *testing.T, path string) capture.Tail {
	t.Helper()
	tail, err := capture.CutTail(t.Context(), path, capture.Options{Log: slog.New(slog.DiscardHandler), NodeID: node})
	if err != nil {
		t.Fatal(err)
	}
	return tail
}

func spoolFiles(t *testing.T, path string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(capture.StateDir(path), "spool", "*.ltx"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func TestUploadedFilesAreKeptUntilTheyAreConfirmed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	m := newModel(t)
	c := holding(t, path, m)
	for _, q := range []string{"CREATE TABLE t(x)", "INSERT INTO t VALUES(1)", "INSERT INTO t VALUES(2)"} {
		testdb.Exec(t, db, q)
		step(t, c)
		m.drain(c.Spool())
	}
	if n := spoolFiles(t, path); n != 3 || c.Spool().Uploaded() != 3 {
		t.Fatalf("%d files are kept, up to TXID %s", n, c.Spool().Uploaded())
	}
	if n, _ := c.Spool().Size(); n != 0 {
		t.Errorf("%d files wait", n)
	}
	if err := c.Spool().Confirm(2); err != nil {
		t.Fatal(err)
	}
	if n := spoolFiles(t, path); n != 1 {
		t.Errorf("%d files are kept after two were confirmed", n)
	}
	testdb.Exec(t, db, "INSERT INTO t VALUES(3)")
	step(t, c)
	m.drain(c.Spool())
	if err := c.Spool().Confirm(c.Spool().Uploaded()); err != nil {
		t.Fatal(err)
	}
	if n := spoolFiles(t, path); n != 0 || c.Spool().Uploaded() != 0 {
		t.Errorf("%d files are kept after all were confirmed", n)
	}
	m.endsEqual(c, db, path)
}

func TestWhatAnEarlierProcessMayHaveUploadedIsNotAddedTo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	m := newModel(t)
	c := holding(t, path, m)
	for _, q := range []string{"CREATE TABLE t(x)", "INSERT INTO t VALUES(1)"} {
		testdb.Exec(t, db, q)
		step(t, c)
		m.drain(c.Spool())
	}
	shut(t, c)
	testdb.Exec(t, db, "INSERT INTO t VALUES(3)")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	got := tail(t, path)
	if !got.Known || got.Base != (ltx.Pos{}) || got.End.TXID != 3 || len(got.Files) != 3 || got.Files[1].Pos != m.tip.Pos {
		t.Fatalf("tail %+v, the replica is at %v", got, m.tip.Pos)
	}
}

func TestTheTailIsWhatTheStateDoesNotKnowToBeUploaded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)")
	if got := tail(t, path); got.Known {
		t.Errorf("tail without a state: %+v", got)
	}
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	m.drain(c.Spool())
	shut(t, c)
	uploaded := m.tip.Pos
	if got := tail(t, path); !got.Known || got.Base != uploaded || got.End != uploaded || len(got.Files) != 0 {
		t.Errorf("tail %+v of a database that is at %v", got, uploaded)
	}
	testdb.Exec(t, db, "INSERT INTO t VALUES(1)", "PRAGMA wal_checkpoint(TRUNCATE)", "INSERT INTO t VALUES(2)")
	got := tail(t, path)
	if !got.Known || got.Base != uploaded || got.End.TXID != uploaded.TXID+1 || len(got.Files) != 1 {
		t.Fatalf("tail %+v", got)
	}
	if h := headerOf(t, got.Files[0].Path); h.NodeID != node || h.PreApplyChecksum != uploaded.PostApplyChecksum {
		t.Errorf("header %+v", h)
	}
	lock, err := capture.LockState(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(lock.ClearSpool(), lock.Close()); err != nil {
		t.Fatal(err)
	}
	if now := tail(t, path); !now.Known || now.Base != got.End || len(now.Files) != 0 {
		t.Errorf("tail %+v once its files are elsewhere, at %v", now, got.End)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func headerOf(t *testing.T, path string) ltx.Header {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dec, err := ltx.NewDecoder(f)
	if err != nil {
		t.Fatal(err)
	}
	return dec.Header()
}

func TestAStateDirectoryIsLockedForWhoFollows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	lock, err := capture.LockState(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := capture.New(path, capture.DefaultConfig(), capture.Options{}); err == nil {
		t.Error("captured in spite of the lock")
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	m := newModel(t)
	shut(t, capturer(t, path, m))
}

func TestCaptureGoesOnWhereAFollowerLeftOffWithoutAComparison(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)", fill)
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	m.drain(c.Spool())
	shut(t, c)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := capture.Followed(path, m.tip)
	if err != nil {
		t.Fatal(err)
	}
	c = resumed(t, path, *p)
	db = testdb.Open(t, path)
	testdb.Exec(t, db, "INSERT INTO t VALUES(1)")
	step(t, c)
	if n := c.Status().Resyncs; n != 0 {
		t.Errorf("%d comparisons", n)
	}
	m.drain(c.Spool())
	m.endsEqual(c, db, path)
}

func TestTheTailOfADatabaseWithANewPageSizeBeginsWhereItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)")
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	m.drain(c.Spool())
	shut(t, c)
	testdb.Exec(t, db, "PRAGMA journal_mode=DELETE", "PRAGMA page_size=8192", "VACUUM", "PRAGMA journal_mode=WAL")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	got := tail(t, path)
	if !got.Known || got.Base != m.tip.Pos || len(got.Files) != 1 || !got.Files[0].Info.IsSnapshot() || got.PageSize != 8192 {
		t.Errorf("tail %+v of a database that was at %v", got, m.tip.Pos)
	}
}
