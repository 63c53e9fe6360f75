package capture_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/ltx"
)

func TestASnapshotIsOneCapturedStateWhileWritersGoOn(t *testing.T) {
	for _, mode := range []string{"WAL", "DELETE"} {
		t.Run(mode, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.db")
			db := testdb.Create(t, path, testdb.Options{JournalMode: mode})
			testdb.Exec(t, db, "CREATE TABLE t(x)", fill)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			m := newModel(t)
			c := keep(t, path, m)
			stop := running(t, c, m)
			// Without a WAL a pause must be long enough to read all of it.
			w := testdb.StartWriter(t, path, testdb.Load{Rate: map[string]float64{"WAL": 100, "DELETE": 5}[mode], Payload: 300})
			for range 5 {
				var file bytes.Buffer
				var pos ltx.Pos
				eventually(t, "a snapshot", func() bool {
					file.Reset()
					var err error
					pos, err = c.Snapshot(t.Context(), &file)
					return err == nil
				})
				h, tr, err := ltx.VerifyFile(&file)
				if err != nil {
					t.Fatal(err)
				}
				if !h.IsSnapshot() || h.MaxTXID != pos.TXID || tr.PostApplyChecksum != pos.PostApplyChecksum {
					t.Errorf("file to %s with checksum %s, position %v", h.MaxTXID, tr.PostApplyChecksum, pos)
				}
				at := pos.TXID
				eventually(t, "more commits", func() bool { return c.Status().Pos.TXID > at+2 })
			}
			w.Stop(t)
			stop()
			step(t, c)
			m.drain(c.Spool())
			shut(t, c)
			m.equals(path)
		})
	}
}

func TestThePositionOfASnapshotIsThatOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)", fill)
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	m.drain(c.Spool())
	testdb.Exec(t, db, "INSERT INTO t VALUES(1)")
	pos, err := c.Snapshot(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // while the file of the snapshot's position waits
		testdb.Exec(t, db, "INSERT INTO t VALUES(2)")
		step(t, c)
	}
	if f, ok := c.Spool().Next(); !ok || f.Pos != pos {
		t.Errorf("the file ends at %v, the snapshot at %v", f.Pos, pos)
	}
	m.drain(c.Spool())
	if n := len(m.files); n != 3 {
		t.Errorf("files are %v, want a base, the one before and the one after the snapshot", m.files)
	}
	m.endsEqual(c, db, path)
}

// closes is a writer that closes a capturer while a snapshot is written to it.
type closes struct {
	c     *capture.Capturer
	begun bool
	group errgroup.Group
}

func (w *closes) Write(b []byte) (int, error) {
	if !w.begun {
		w.begun = true
		w.group.Go(w.c.Close)
	}
	return len(b), nil
}

func TestClosingEndsASnapshot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 40000) INSERT INTO t SELECT randomblob(1000) FROM n")
	c := capturer(t, path, newModel(t))
	step(t, c)
	w := &closes{c: c}
	if _, err := c.Snapshot(t.Context(), w); !errors.Is(err, capture.ErrNotOpen) {
		t.Errorf("got %v", err)
	}
	if err := w.group.Wait(); err != nil {
		t.Error(err)
	}
}
