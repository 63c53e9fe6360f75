// Package testdb makes, fills and compares real SQLite databases for tests: a
// writer that proves by a hash chain which of its commits survived, and
// comparisons that name the first difference. It knows nothing of replication.
//
// Compare and the page functions open files of their own. POSIX locks belong
// to a process, so never point Pages at a database that this process has open.
package testdb

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"testing"

	_ "github.com/mattn/go-sqlite3" // registers the driver
)

// Options says how Create lays a database out. The zero value is a WAL
// database of 4096-byte pages.
type Options struct {
	PageSize    int    // bytes; 0: 4096
	JournalMode string // "": WAL
	AutoVacuum  string // "": NONE
}

// Create makes a new database with an empty chain and returns a handle of one
// connection, closed when the test ends.
func Create(t testing.TB, path string, o Options) *sql.DB {
	t.Helper()
	db := Open(t, path)
	if err := lay(t.Context(), db, o); err != nil {
		t.Fatalf("create %s: %v", path, err)
	}
	return db
}

func lay(ctx context.Context, db *sql.DB, o Options) error {
	if o.PageSize == 0 {
		o.PageSize = 4096
	}
	if o.JournalMode == "" {
		o.JournalMode = "WAL"
	}
	if o.AutoVacuum == "" {
		o.AutoVacuum = "NONE"
	}
	for _, q := range []string{
		fmt.Sprintf("PRAGMA page_size=%d", o.PageSize),
		"PRAGMA auto_vacuum=" + o.AutoVacuum,
		"PRAGMA journal_mode=" + o.JournalMode,
	} {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
	}
	return layChain(ctx, db)
}

// Open returns a handle of one connection to a database, made when it is
// first used and closed when the test ends. Statements wait five seconds for
// locks.
func Open(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := connect(path, "rwc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close %s: %v", path, err)
		}
	})
	return db
}

// Exec runs statements and fails the test on an error.
func Exec(t testing.TB, db *sql.DB, queries ...string) {
	t.Helper()
	for _, q := range queries {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// Number returns the one number that a query yields.
func Number(t testing.TB, db *sql.DB, query string) int64 {
	t.Helper()
	var n int64
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func connect(path, mode string) (*sql.DB, error) {
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}
	u.RawQuery = url.Values{
		"mode": {mode}, "_busy_timeout": {"5000"}, "_synchronous": {"NORMAL"},
	}.Encode()
	db, err := sql.Open("sqlite3", u.String())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	return db, nil
}
