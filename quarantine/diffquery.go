package quarantine

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// shown is how much of a value is shown: characters of a text, bytes of a
	// blob.
	shown = 1024
	// mostColumns is SQLite's limit for what one query yields.
	mostColumns = 2000
)

// pair is one table in both databases, where ours is a and theirs is b.
type pair struct{ ours, theirs layout }

// query yields rows: the key, then for each column two values that stand for
// it, of a changed row also those of the other side and whether they differ.
type query struct {
	sql     string
	key     []string
	columns []string
	after   bool // the row is of ours; of a changed one there are both
	both    bool
}

// alike tells whether a key means the same in both.
func (p pair) alike() bool {
	return p.ours.exists && p.theirs.exists && p.ours.rowid == p.theirs.rowid && len(p.ours.key) > 0 && len(p.theirs.key) > 0 &&
		(p.ours.rowid || slices.Equal(p.ours.key, p.theirs.key))
}

// missing yields the rows of one side that the other side does not have.
func (p pair) missing(in, from layout) query {
	if !in.exists {
		return query{}
	}
	q := query{key: in.key, columns: in.rest(), after: in.schema == "main"}
	if from.exists && (len(in.key) == 0 || len(from.key) == 0) {
		return p.except(in, from)
	}
	if len(q.key)+2*len(q.columns) > mostColumns {
		q.columns = nil
	}
	var out []string
	for _, k := range q.key {
		out = append(out, value("x", k)...)
	}
	for _, c := range q.columns {
		out = append(out, value("x", c)...)
	}
	q.sql = fmt.Sprintf("SELECT %s FROM %s AS x", strings.Join(out, ", "), in.table())
	if p.alike() {
		q.sql += fmt.Sprintf(" WHERE NOT EXISTS (SELECT 1 FROM %s AS y WHERE %s)", from.table(), sameKey("y", from.key, "x", in.key))
	}
	return q
}

// except compares whole rows of a table in which nothing names one.
func (p pair) except(in, from layout) query {
	q := query{columns: in.rest(), after: in.schema == "main"}
	var a, b, out []string
	for _, c := range in.rest() {
		out = append(out, value("x", c)...)
		a = append(a, quote(c))
		if slices.Contains(from.rest(), c) {
			b = append(b, quote(c))
		} else {
			b = append(b, "NULL")
		}
	}
	q.sql = fmt.Sprintf("SELECT %s FROM (SELECT %s FROM %s EXCEPT SELECT %s FROM %s) AS x",
		strings.Join(out, ", "), strings.Join(a, ", "), in.table(), strings.Join(b, ", "), from.table())
	return q
}

// changed yields the rows that both sides have and that differ. A column that
// one side lacks differs if it was given another value than its default.
func (p pair) changed() query {
	if !p.alike() {
		return query{}
	}
	q := query{key: p.ours.key, columns: p.ours.rest(), after: true, both: true}
	var left, right, out []string
	for _, k := range q.key {
		out = append(out, value("a", k)...)
	}
	narrow := len(q.key)*2+5*len(q.columns) <= mostColumns
	for _, f := range p.ours.columns {
		if !slices.Contains(q.columns, f.name) {
			continue
		}
		before := "(" + f.byDefault + ")"
		shownBefore := []string{"NULL", "NULL"}
		if p.theirs.has(f.name) {
			before = "b." + quote(f.name)
			shownBefore = value("b", f.name)
		}
		after := "a." + quote(f.name)
		left = append(left, after+" COLLATE BINARY", "typeof("+after+")")
		right = append(right, before, "typeof("+before+")")
		if narrow {
			differs := fmt.Sprintf("(%s, typeof(%s)) IS NOT (%s, typeof(%s))", after+" COLLATE BINARY", after, before, before)
			out = append(append(append(out, value("a", f.name)...), shownBefore...), differs)
		}
	}
	if len(left) == 0 {
		return query{}
	}
	if !narrow {
		q.columns = nil
	}
	q.sql = fmt.Sprintf("SELECT %s FROM %s AS a CROSS JOIN %s AS b ON %s WHERE %s", strings.Join(out, ", "),
		p.ours.table(), p.theirs.table(), sameKey("b", p.theirs.key, "a", p.ours.key), differ(left, right))
	return q
}

// differ compares lists of expressions, as many at a time as SQLite does.
func differ(left, right []string) string {
	var any []string
	for len(left) > 0 {
		n := min(len(left), 500)
		any = append(any, fmt.Sprintf("(%s) IS NOT (%s)", strings.Join(left[:n], ", "), strings.Join(right[:n], ", ")))
		left, right = left[n:], right[n:]
	}
	return strings.Join(any, " OR ")
}

// sameKey compares by the order of the first of two tables, in which rows are
// looked up.
func sameKey(x string, keyOfX []string, y string, keyOfY []string) string {
	var all []string
	for i := range keyOfX {
		all = append(all, fmt.Sprintf("%s.%s = %s.%s", x, quote(keyOfX[i]), y, quote(keyOfY[i])))
	}
	return strings.Join(all, " AND ")
}

// value yields what is shown of a column, and its size in bytes where that is
// cut. Being an expression, it has no declared type that a driver would obey.
func value(table, name string) []string {
	c := table + "." + quote(name)
	long := fmt.Sprintf("octet_length(%s) > %d AND typeof(%s) IN ('text', 'blob')", c, shown, c)
	return []string{
		fmt.Sprintf("CASE WHEN %s THEN substr(%s, 1, %d) ELSE %s END", long, c, shown, c),
		fmt.Sprintf("CASE WHEN %s THEN octet_length(%s) END", long, c),
	}
}

func (l layout) table() string { return l.schema + "." + quote(l.name) }

// rest are the columns beside the key.
func (l layout) rest() []string {
	var names []string
	for _, f := range l.columns {
		if !slices.Contains(l.key, f.name) {
			names = append(names, f.name)
		}
	}
	return names
}

func (l layout) has(name string) bool {
	return slices.ContainsFunc(l.columns, func(f field) bool { return f.name == name })
}
