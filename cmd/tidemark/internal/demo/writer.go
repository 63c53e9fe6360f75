package demo

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Write commits every pause until ctx ends, and calls committed with the
// number of commits in the database after each.
func Write(ctx context.Context, path string, pause time.Duration, committed func(n int64)) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
		if ctx.Err() != nil {
			return nil
		}
		var n int64
		// A commit that has begun is finished: the context ends the loop only.
		err := with(path, func(db *sql.DB) (err error) {
			n, err = commit(context.WithoutCancel(ctx), db)
			return err
		})
		if err != nil {
			return fmt.Errorf("commit to %s: %w", path, err)
		}
		committed(n)
	}
}

// commit adds a snapshot with one data file, as an INSERT into a lake does.
func commit(ctx context.Context, db *sql.DB) (n int64, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	before, n, err := chainEnd(ctx, tx)
	if err != nil {
		return 0, err
	}
	n++
	payload := make([]byte, 64)
	_, _ = rand.Read(payload)
	for _, s := range []struct {
		query string
		args  []any
	}{
		{"INSERT INTO ducklake_snapshot VALUES (?, ?, 1, 2, ?)", []any{n, now(), n}},
		{"INSERT INTO ducklake_snapshot_changes VALUES (?, 'inserted_into_table:1')", []any{n}},
		{"INSERT INTO ducklake_data_file VALUES (?, 1, ?, NULL, ?, 1000, 48213)",
			[]any{n, n, fmt.Sprintf("ducklake-%x.parquet", payload[:16])}},
		{"UPDATE ducklake_table_stats SET record_count = record_count + 1000, next_row_id = next_row_id + 1000", nil},
		{"INSERT INTO chain VALUES (?, ?, ?)", []any{n, payload, link(before, n, payload)}},
	} {
		if _, err := tx.ExecContext(ctx, s.query, s.args...); err != nil {
			return 0, err
		}
	}
	return n, tx.Commit()
}

func chainEnd(ctx context.Context, tx *sql.Tx) (hash []byte, n int64, err error) {
	row := tx.QueryRowContext(ctx, "SELECT n, hash FROM chain ORDER BY n DESC LIMIT 1")
	if err := row.Scan(&n, &hash); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, 0, err
	}
	return hash, n, nil
}
