package testdb

import (
	"bufio"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math"
	"strings"
	"testing"
)

// SameDatabase fails the test unless both databases hold the same: schema,
// every row in the same order, page size and count, integrity, and, where
// there is one, the same unbroken chain.
func SameDatabase(t testing.TB, a, b string) {
	t.Helper()
	if err := Same(t.Context(), a, b); err != nil {
		t.Fatal(err)
	}
}

// ChainPrefix fails the test unless the chain of the restored database is
// unbroken and the beginning, or the whole, of the live one. It returns the
// newest link of the restored chain.
func ChainPrefix(t testing.TB, restored, live string) Link {
	t.Helper()
	l, err := Verify(t.Context(), restored)
	if err == nil {
		err = CheckPrefix(t.Context(), l, live)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Same is SameDatabase for use outside the goroutine of the test.
func Same(ctx context.Context, a, b string) error {
	da, err := Describe(ctx, a)
	if err != nil {
		return err
	}
	db, err := Describe(ctx, b)
	if err != nil {
		return err
	}
	if diff := da.diff(db); diff != "" {
		return fmt.Errorf("%s and %s differ: %s", a, b, diff)
	}
	return nil
}

// Description is what two equal databases have in common.
type Description struct {
	PageSize, PageCount int64
	Integrity           string // "ok"
	Objects             []Object
	Chain               string // newest link; "" without a chain
}

// Object is one entry of the schema with the hash of its rows.
type Object struct {
	Name, SQL string
	Rows      int64
	Hash      string
}

// Describe reads a whole database, streaming. Nobody should write meanwhile.
func Describe(ctx context.Context, path string) (Description, error) {
	db, err := connect(path, "ro")
	if err != nil {
		return Description{}, err
	}
	d, err := describe(ctx, db)
	if err := errors.Join(err, db.Close()); err != nil {
		return Description{}, fmt.Errorf("read %s: %w", path, err)
	}
	return d, nil
}

func describe(ctx context.Context, db *sql.DB) (d Description, err error) {
	if _, err = db.ExecContext(ctx, "BEGIN"); err != nil {
		return d, err
	}
	for query, dst := range map[string]any{
		"PRAGMA page_size": &d.PageSize, "PRAGMA page_count": &d.PageCount, "PRAGMA integrity_check": &d.Integrity,
	} {
		if err := db.QueryRowContext(ctx, query).Scan(dst); err != nil {
			return d, fmt.Errorf("%s: %w", query, err)
		}
	}
	if d.Integrity != "ok" {
		return d, fmt.Errorf("integrity check: %s", d.Integrity)
	}
	if d.Objects, err = schema(ctx, db); err != nil {
		return d, fmt.Errorf("read schema: %w", err)
	}
	chained := false
	for i := range d.Objects {
		o := &d.Objects[i]
		if !strings.HasPrefix(strings.ToUpper(o.SQL), "CREATE TABLE") {
			continue
		}
		if err := hashRows(ctx, db, o); err != nil {
			return d, fmt.Errorf("read table %s: %w", o.Name, err)
		}
		chained = chained || o.Name == "chain"
	}
	if _, err = db.ExecContext(ctx, "COMMIT"); err != nil || !chained {
		return d, err
	}
	l, err := verify(ctx, db)
	d.Chain = l.String()
	return d, err
}

func schema(ctx context.Context, db *sql.DB) (out []Object, err error) {
	rows, err := db.QueryContext(ctx, "SELECT name, coalesce(sql, '') FROM sqlite_schema ORDER BY rowid")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var o Object
		if err := rows.Scan(&o.Name, &o.SQL); err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, rows.Err()
}

func hashRows(ctx context.Context, db *sql.DB, o *Object) (err error) {
	rows, err := db.QueryContext(ctx, `SELECT * FROM "`+strings.ReplaceAll(o.Name, `"`, `""`)+`"`)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	cols, err := rows.Columns()
	if err != nil {
		return err
	}
	vals, ptrs := make([]any, len(cols)), make([]any, len(cols))
	for i := range vals {
		ptrs[i] = &vals[i]
	}
	h := sha256.New()
	w := bufio.NewWriterSize(h, 1<<16)
	for rows.Next() {
		if err := rows.Scan(ptrs...); err != nil {
			return err
		}
		for _, v := range vals {
			if err := writeValue(w, v); err != nil {
				return err
			}
		}
		o.Rows++
	}
	o.Hash = sum(h, w)
	return rows.Err()
}

func sum(h hash.Hash, w *bufio.Writer) string {
	if err := w.Flush(); err != nil {
		return err.Error()
	}
	return hex.EncodeToString(h.Sum(nil))
}

func writeValue(w *bufio.Writer, v any) error {
	var head [9]byte
	var body []byte
	switch v := v.(type) {
	case nil:
		head[0] = 'n'
	case int64:
		head[0] = 'i'
		binary.BigEndian.PutUint64(head[1:], uint64(v))
	case float64:
		head[0] = 'f'
		binary.BigEndian.PutUint64(head[1:], math.Float64bits(v))
	case string:
		head[0], body = 't', []byte(v)
		binary.BigEndian.PutUint64(head[1:], uint64(len(v)))
	case []byte:
		head[0], body = 'b', v
		binary.BigEndian.PutUint64(head[1:], uint64(len(v)))
	default: // what the driver makes of columns declared as boolean or date
		head[0], body = 'o', fmt.Appendf(nil, "%T %v", v, v)
		binary.BigEndian.PutUint64(head[1:], uint64(len(body)))
	}
	if _, err := w.Write(head[:]); err != nil {
		return err
	}
	_, err := w.Write(body)
	return err
}

func (d Description) diff(o Description) string {
	if d.PageSize != o.PageSize || d.PageCount != o.PageCount {
		return fmt.Sprintf("%d pages of %d bytes against %d of %d", d.PageCount, d.PageSize, o.PageCount, o.PageSize)
	}
	if len(d.Objects) != len(o.Objects) {
		return fmt.Sprintf("%d objects against %d", len(d.Objects), len(o.Objects))
	}
	for i, a := range d.Objects {
		if b := o.Objects[i]; a != b {
			return fmt.Sprintf("%s with %d rows against %s with %d (%.8s, %.8s)", a.Name, a.Rows, b.Name, b.Rows, a.Hash, b.Hash)
		}
	}
	if d.Chain != o.Chain {
		return fmt.Sprintf("chain at %s against %s", d.Chain, o.Chain)
	}
	return ""
}
