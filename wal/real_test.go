package wal_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mattn/go-sqlite3"
	"github.com/tidemark-io/tidemark/wal"
)

// database is a SQLite database in WAL mode that never checkpoints by itself
// and spills all but the smallest transactions into the log before COMMIT.
type database struct {
	testing.TB
	path string
	db   *sql.DB
}

func newDatabase(t testing.TB, pageSize int) *database {
	t.Helper()
	d := openDatabase(t, filepath.Join(t.TempDir(), "app.db"))
	d.exec(fmt.Sprintf("PRAGMA page_size = %d", pageSize))
	d.exec("PRAGMA journal_mode = wal")
	d.exec("PRAGMA wal_autocheckpoint = 0")
	d.exec("PRAGMA synchronous = off")
	d.exec("PRAGMA cache_size = 5")
	d.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, b BLOB)")
	return d
}

func openDatabase(t testing.TB, path string) *database {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	return &database{TB: t, path: path, db: db}
}

func (d *database) exec(query string, args ...any) {
	d.Helper()
	if _, err := d.db.Exec(query, args...); err != nil {
		d.Fatalf("%s: %v", query, err)
	}
}

func (d *database) insert(rows, size int) {
	d.Helper()
	d.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < ?)
		INSERT INTO t (b) SELECT randomblob(?) FROM n`, rows, size)
}

// restart copies the whole log into the database file, so that the next
// commit starts the log over.
func (d *database) restart() {
	d.Helper()
	d.exec("PRAGMA wal_checkpoint(RESTART)")
}

func (d *database) file(suffix string) []byte {
	d.Helper()
	b, err := os.ReadFile(d.path + suffix)
	if err != nil {
		d.Fatal(err)
	}
	return b
}

// image returns the pages as SQLite reads them.
func (d *database) image() []byte {
	d.Helper()
	conn, err := d.db.Conn(context.Background())
	if err != nil {
		d.Fatal(err)
	}
	defer conn.Close()
	var image []byte
	err = conn.Raw(func(c any) error {
		image, err = c.(*sqlite3.SQLiteConn).Serialize("main")
		return err
	})
	if err != nil {
		d.Fatal(err)
	}
	return image
}

// apply returns the image after a segment of log.
func apply(image, log []byte, s wal.Segment, pageSize uint32) []byte {
	if s.Commits == 0 {
		return image
	}
	size := int(pageSize)
	next := make([]byte, int(s.Commit)*size)
	copy(next, image)
	for _, p := range s.Pages {
		off := wal.FrameOffset(p.Frame, pageSize)
		copy(next[int(p.Pgno-1)*size:][:size], log[off:])
	}
	return next
}

func header(t testing.TB, log []byte) wal.Header {
	t.Helper()
	h, err := wal.ReadHeader(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func committed(t testing.TB, log []byte, from wal.Mark, limit wal.Limit) wal.Segment {
	t.Helper()
	s, err := wal.Committed(bytes.NewReader(log), header(t, log), from, limit)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func everything(t testing.TB, log []byte) wal.Segment {
	t.Helper()
	return committed(t, log, header(t, log).Start(), wal.Limit{})
}
