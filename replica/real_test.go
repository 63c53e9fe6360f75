package replica_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
)

func TestRestoredDatabaseIsWhatSQLiteWrote(t *testing.T) {
	live := filepath.Join(t.TempDir(), "live.db")
	db := testdb.Create(t, live, testdb.Options{PageSize: 1024})
	testdb.Exec(t, db, "CREATE TABLE t (x)",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 300) INSERT INTO t SELECT randomblob(3000) FROM n")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	h := newHistory(t, 1024)
	var err error
	if h.image, err = os.ReadFile(live); err != nil {
		t.Fatal(err)
	}
	h.pos = ltx.Pos{TXID: 1, PostApplyChecksum: h.sum()}
	h.put(file(9, 1, 1), h.snapshot())
	restored := filepath.Join(t.TempDir(), "app.db")
	if err := h.restoreTo(restored, replica.RefuseExisting); err != nil {
		t.Fatal(err)
	}
	testdb.SamePages(t, live, restored, 1024)
	testdb.SameDatabase(t, live, restored)
}

func TestObjectLayoutHoldsTheSame(t *testing.T) {
	h := newHistory(t, 512)
	h.write(3, 10)
	files, err := h.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	objects := replica.New(h.bucket, replica.LayoutObject, slog.New(slog.DiscardHandler))
	for _, f := range files {
		if _, err := h.bucket.Put(t.Context(), objects.Key(f), bytes.NewReader(h.read(f)), storage.Condition{}); err != nil {
			t.Fatal(err)
		}
		h.remove(f)
	}
	if tip, err := objects.Tip(t.Context()); err != nil || tip.Pos != h.pos {
		t.Errorf("got tip %+v, %v; want %v", tip, err, h.pos)
	}
	h.Replica = objects
	h.check(2)
	h.check(0)
}
