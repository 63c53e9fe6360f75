// Package demo is the material of the demonstration: a small SQLite database
// shaped as a DuckLake catalog, a writer that commits to it as DuckDB does, one
// connection a transaction, and what is needed to tell whether two databases
// are the same. It knows nothing of replication.
package demo

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver
)

// schema holds the catalog tables that a commit of data touches, and the
// chain: each hash is made of the hash before it, the number and the payload.
const schema = `
CREATE TABLE ducklake_metadata("key" VARCHAR NOT NULL, "value" VARCHAR NOT NULL, "scope" VARCHAR, scope_id BIGINT);
CREATE TABLE ducklake_snapshot(snapshot_id BIGINT PRIMARY KEY, snapshot_time VARCHAR, schema_version BIGINT,
	next_catalog_id BIGINT, next_file_id BIGINT);
CREATE TABLE ducklake_snapshot_changes(snapshot_id BIGINT PRIMARY KEY, changes_made VARCHAR);
CREATE TABLE ducklake_table(table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, table_name VARCHAR);
CREATE TABLE ducklake_data_file(data_file_id BIGINT PRIMARY KEY, table_id BIGINT, begin_snapshot BIGINT,
	end_snapshot BIGINT, path VARCHAR, record_count BIGINT, file_size_bytes BIGINT);
CREATE TABLE ducklake_table_stats(table_id BIGINT, record_count BIGINT, next_row_id BIGINT, file_size_bytes BIGINT);
CREATE TABLE chain(n INTEGER PRIMARY KEY, payload BLOB NOT NULL, hash BLOB NOT NULL);
INSERT INTO ducklake_metadata VALUES ('version', '1.0', NULL, NULL), ('data_path', 'data/', NULL, NULL);
INSERT INTO ducklake_table VALUES (1, 0, NULL, 'events');
INSERT INTO ducklake_table_stats VALUES (1, 0, 0, 0);
INSERT INTO ducklake_snapshot VALUES (0, '', 0, 2, 0);
`

// Create makes the catalog at path, in WAL mode.
func Create(ctx context.Context, path string) error {
	return with(path, func(db *sql.DB) error {
		if _, err := db.ExecContext(ctx, "PRAGMA journal_mode = wal"); err != nil {
			return fmt.Errorf("create catalog: %w", err)
		}
		if _, err := db.ExecContext(ctx, schema); err != nil {
			return fmt.Errorf("create catalog: %w", err)
		}
		return nil
	})
}

// with opens the database for the time of do.
func with(path string, do func(*sql.DB) error) error {
	name := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(),
		RawQuery: "_busy_timeout=5000&_txlock=immediate&_synchronous=normal"}
	db, err := sql.Open("sqlite3", name.String())
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	return errors.Join(do(db), db.Close())
}

// link is the hash of row n of the chain.
func link(before []byte, n int64, payload []byte) []byte {
	h := sha256.New()
	h.Write(before)
	h.Write(strconv.AppendInt(nil, n, 10))
	h.Write(payload)
	return h.Sum(nil)
}

func now() string { return time.Now().UTC().Format("2006-01-02 15:04:05.999999+00") }
