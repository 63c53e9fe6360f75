package quarantine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Sink takes what Diff finds. An error of it ends Diff.
type Sink interface {
	// Schema takes a table, index, view or trigger whose definition differs.
	Schema(SchemaChange) error
	// Row takes a row that differs.
	Row(RowChange) error
	// Table takes the totals of a table, after its rows; only if there are any
	// or it could not be compared.
	Table(TableChange) error
}

// SchemaChange is a difference between two definitions; an empty one is none.
type SchemaChange struct {
	Type   string `json:"type"` // table, index, view or trigger
	Name   string `json:"name"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// What happened to a row.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// RowChange is a row that differs. Before and After are whole rows without the
// key, or of a changed row the fields that differ.
type RowChange struct {
	Table  string `json:"table"`
	Change string `json:"change"`
	Key    Fields `json:"key,omitempty"`
	Before Fields `json:"before,omitempty"`
	After  Fields `json:"after,omitempty"`
}

// TableChange is how much of a table differs.
type TableChange struct {
	Name    string `json:"name"`
	Added   int64  `json:"added"`
	Removed int64  `json:"removed"`
	Changed int64  `json:"changed"`
	Problem string `json:"problem,omitempty"` // why it could not be compared to its end
}

// Diff tells sink how the quarantined database differs from the one at base,
// table by table: what was committed here since. Neither is changed, nor read
// into memory: at most a row of each is, with values cut to 1 KiB. Tables of
// modules that SQLite alone does not have are compared by what they store. A
// table that cannot be compared is told to sink, and is an error in the end.
func (e Entry) Diff(ctx context.Context, base string, sink Sink) error {
	if e.Problem != "" {
		return fmt.Errorf("compare %s: %w: %s", e.ID, ErrDamaged, e.Problem)
	}
	err := withDatabase(e.Database(), "mode=ro&immutable=1", func(db *sql.DB) error {
		if _, err := db.ExecContext(ctx, "ATTACH ? AS base", fileURL(base, "mode=ro")); err != nil {
			return err
		}
		d := &diff{db: db, sink: sink}
		return d.run(ctx)
	})
	if err != nil {
		return fmt.Errorf("compare %s with %s: %w", e.ID, base, err)
	}
	return nil
}

// diff compares the databases main, the quarantined one, and base of one
// connection.
type diff struct {
	db   *sql.DB
	sink Sink
}

func (d *diff) run(ctx context.Context) error {
	if _, err := d.db.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	if err := d.schema(ctx); err != nil {
		return err
	}
	names, err := column(ctx, d.db, `SELECT DISTINCT name FROM pragma_table_list
		WHERE schema IN ('main', 'base') AND type IN ('table', 'shadow')
		AND name NOT IN ('sqlite_schema', 'sqlite_temp_schema') ORDER BY name`)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		t := TableChange{Name: name}
		err := d.table(ctx, &t)
		if err != nil && (codeOf(err) == 0 || ctx.Err() != nil) {
			return err
		}
		if err != nil {
			t.Problem = err.Error()
			errs = append(errs, fmt.Errorf("table %q: %w", name, err))
		}
		if t != (TableChange{Name: name}) {
			if err := d.sink.Table(t); err != nil {
				return err
			}
		}
	}
	return errors.Join(errs...)
}

// schema compares the definitions.
func (d *diff) schema(ctx context.Context) (err error) {
	rows, err := d.db.QueryContext(ctx, `SELECT coalesce(a.type, b.type), coalesce(a.name, b.name), coalesce(b.sql, ''), coalesce(a.sql, '')
		FROM main.sqlite_schema AS a FULL JOIN base.sqlite_schema AS b ON a.type = b.type AND a.name = b.name
		WHERE a.sql IS NOT b.sql ORDER BY 2, 1`)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var c SchemaChange
		if err := rows.Scan(&c.Type, &c.Name, &c.Before, &c.After); err != nil {
			return err
		}
		if err := d.sink.Schema(c); err != nil {
			return err
		}
	}
	return rows.Err()
}

// table compares the rows of one table.
func (d *diff) table(ctx context.Context, t *TableChange) error {
	ours, err := d.layout(ctx, "main", t.Name)
	if err != nil {
		return err
	}
	theirs, err := d.layout(ctx, "base", t.Name)
	if err != nil {
		return err
	}
	p := pair{ours: ours, theirs: theirs}
	for _, step := range []struct {
		change string
		query  query
		count  *int64
	}{
		{Removed, p.missing(theirs, ours), &t.Removed},
		{Changed, p.changed(), &t.Changed},
		{Added, p.missing(ours, theirs), &t.Added},
	} {
		if step.query.sql == "" {
			continue
		}
		if err := d.rows(ctx, RowChange{Table: t.Name, Change: step.change}, step.query, step.count); err != nil {
			return err
		}
	}
	return nil
}

// rows passes on what a query yields.
func (d *diff) rows(ctx context.Context, kind RowChange, q query, count *int64) (err error) {
	rows, err := d.db.QueryContext(ctx, q.sql)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
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
		*count++
		if err := d.sink.Row(q.row(kind, values)); err != nil {
			return err
		}
	}
	return rows.Err()
}

// layout is how one database keeps a table.
type layout struct {
	schema, name string
	exists       bool
	rowid        bool
	key          []string // columns that name a row; none: nothing does
	columns      []field
}

// field is a column of a table that is stored.
type field struct{ name, byDefault string }

func (d *diff) layout(ctx context.Context, schema, name string) (layout, error) {
	l := layout{schema: schema, name: name}
	var without bool
	err := d.db.QueryRowContext(ctx, `SELECT wr FROM pragma_table_list WHERE schema = ? AND name = ? AND type IN ('table', 'shadow')`,
		schema, name).Scan(&without)
	if errors.Is(err, sql.ErrNoRows) {
		return l, nil
	}
	if err != nil {
		return l, err
	}
	l.exists, l.rowid = true, !without
	all, err := column(ctx, d.db, `SELECT name FROM pragma_table_xinfo(?, ?)`, name, schema)
	if err != nil {
		return l, err
	}
	if err := d.fields(ctx, &l); err != nil {
		return l, err
	}
	if without {
		l.key, err = column(ctx, d.db, `SELECT name FROM pragma_table_xinfo(?, ?) WHERE pk > 0 ORDER BY pk`, name, schema)
		return l, err
	}
	l.key, err = column(ctx, d.db, `SELECT name FROM pragma_table_xinfo(?1, ?2) WHERE pk = 1 AND type = 'INTEGER' COLLATE NOCASE
		AND NOT EXISTS (SELECT 1 FROM pragma_index_list(?1, ?2) WHERE origin = 'pk')`, name, schema)
	for _, alias := range []string{"rowid", "_rowid_", "oid"} {
		hidden := slices.ContainsFunc(all, func(c string) bool { return strings.EqualFold(c, alias) })
		if len(l.key) == 0 && !hidden {
			l.key = []string{alias}
		}
	}
	return l, err
}

// fields reads the columns that are stored.
func (d *diff) fields(ctx context.Context, l *layout) (err error) {
	rows, err := d.db.QueryContext(ctx, `SELECT name, coalesce(dflt_value, 'NULL') FROM pragma_table_xinfo(?, ?) WHERE hidden = 0 ORDER BY cid`,
		l.name, l.schema)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var f field
		if err := rows.Scan(&f.name, &f.byDefault); err != nil {
			return err
		}
		l.columns = append(l.columns, f)
	}
	return rows.Err()
}
