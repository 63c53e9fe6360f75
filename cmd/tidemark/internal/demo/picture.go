package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
)

// Picture is what must be equal in two copies of a catalog.
type Picture struct {
	Integrity string // answer of PRAGMA integrity_check
	Commits   int64  // length of the hash chain
	Broken    int64  // first link of the chain that does not fit; 0: none
	Dump      string // hash of the schema and every row
	Pages     string // hash of the file once its WAL is folded in
}

// Take looks at a database that nobody else has open.
func Take(ctx context.Context, path string) (Picture, error) {
	var p Picture
	err := with(path, func(db *sql.DB) error {
		if err := db.QueryRowContext(ctx, "PRAGMA integrity_check").Scan(&p.Integrity); err != nil {
			return err
		}
		if err := p.followChain(ctx, db); err != nil {
			return err
		}
		if err := p.dump(ctx, db); err != nil {
			return err
		}
		var busy, frames, done int
		return db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &done)
	})
	if err != nil {
		return p, fmt.Errorf("look at %s: %w", path, err)
	}
	return p, p.hashFile(path)
}

func (p *Picture) followChain(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, "SELECT n, payload, hash FROM chain ORDER BY n")
	if err != nil {
		return err
	}
	defer rows.Close()
	var before []byte
	for rows.Next() {
		var n int64
		var payload, got []byte
		if err := rows.Scan(&n, &payload, &got); err != nil {
			return err
		}
		p.Commits++
		if p.Broken == 0 && (n != p.Commits || !bytes.Equal(got, link(before, n, payload))) {
			p.Broken = p.Commits
		}
		before = got
	}
	return rows.Err()
}

func (p *Picture) dump(ctx context.Context, db *sql.DB) error {
	h := sha256.New()
	tables, err := strings(ctx, db, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
	if err != nil {
		return err
	}
	definitions, err := strings(ctx, db, "SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY name")
	if err != nil {
		return err
	}
	h.Write(fmt.Appendf(nil, "%q", definitions))
	for _, table := range tables {
		if err := dumpTable(ctx, db, table, h); err != nil {
			return fmt.Errorf("dump %s: %w", table, err)
		}
	}
	p.Dump = hex.EncodeToString(h.Sum(nil))
	return nil
}

func dumpTable(ctx context.Context, db *sql.DB, table string, h hash.Hash) error {
	rows, err := db.QueryContext(ctx, `SELECT rowid, * FROM "`+table+`" ORDER BY rowid`)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	values, targets := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		h.Write(fmt.Appendf(nil, "%s%#v\n", table, values))
	}
	return rows.Err()
}

func strings(ctx context.Context, db *sql.DB, query string) (out []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

func (p *Picture) hashFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	p.Pages = hex.EncodeToString(h.Sum(nil))
	return nil
}
