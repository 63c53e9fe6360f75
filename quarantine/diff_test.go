package quarantine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/quarantine"
)

// difference returns what Diff prints of a database made of some statements
// against one made of others.
func difference(t *testing.T, before, after []string, sink func(*strings.Builder) quarantine.Sink) string {
	t.Helper()
	base := build(t, before...)
	p := left(t, build(t, after...), "")
	var out strings.Builder
	if err := p.set().Diff(t.Context(), base, sink(&out)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func text(w *strings.Builder) quarantine.Sink { return quarantine.Text(w) }

func TestDiffNamesWhatWasCommittedHereSince(t *testing.T) {
	for name, test := range map[string]struct{ schema, before, after, want string }{
		"nothing": {"CREATE TABLE t(x)", "INSERT INTO t VALUES(1)", "INSERT INTO t VALUES(1)", ""},
		"rows without a key of their own": {
			"CREATE TABLE t(x, y)",
			"INSERT INTO t VALUES(1, 'a'), (2, 'b'), (3, 'c')",
			"INSERT INTO t VALUES(1, 'a'), (2, 'B'), (3, 'c'), (4, NULL); DELETE FROM t WHERE x = 3",
			"table \"t\"\n  - rowid=3 x=3 y=\"c\"\n  ~ rowid=2  y: \"b\" -> \"B\"\n  + rowid=4 x=4 y=NULL\n  1 added, 1 removed, 1 changed\n",
		},
		"rows with a key": {
			"CREATE TABLE t(a, id INTEGER PRIMARY KEY)",
			"INSERT INTO t VALUES('x', 5), ('y', 6)",
			"INSERT INTO t VALUES('x', 5), ('z', 6), ('y', -7)",
			"table \"t\"\n  ~ id=6  a: \"y\" -> \"z\"\n  + id=-7 a=\"y\"\n  1 added, 0 removed, 1 changed\n",
		},
		"a key that is not the row's number": {
			"CREATE TABLE t(id INTEGER PRIMARY KEY DESC, a)",
			"INSERT INTO t VALUES(5, 1)", "INSERT INTO t VALUES(6, 1)",
			"table \"t\"\n  ~ rowid=1  id: 5 -> 6\n  0 added, 0 removed, 1 changed\n",
		},
		"without rowid": {
			"CREATE TABLE t(a, b TEXT COLLATE NOCASE, c, PRIMARY KEY(b, a DESC)) WITHOUT ROWID",
			"INSERT INTO t VALUES(1, 'x', 1.5), (2, 'x', 1), (3, 'y', 1)",
			"INSERT INTO t VALUES(1, 'x', 2.5), (2, 'x', 1), (4, 'y', x'00ff')",
			"table \"t\"\n  - b=\"y\" a=3 c=1\n  ~ b=\"x\" a=1  c: 1.5 -> 2.5\n  + b=\"y\" a=4 c=x'00ff'\n  1 added, 1 removed, 1 changed\n",
		},
		"types and collations": {
			"CREATE TABLE t(x COLLATE NOCASE, y)",
			"INSERT INTO t VALUES('a', 1), ('b', NULL), ('c', '1'), ('d', 'q')",
			"INSERT INTO t VALUES('A', 1.0), ('b', 0), ('c', 1), ('d', x'71')",
			"table \"t\"\n  ~ rowid=1  x: \"a\" -> \"A\"  y: 1 -> 1.0\n  ~ rowid=2  y: NULL -> 0\n  ~ rowid=3  y: \"1\" -> 1\n" +
				"  ~ rowid=4  y: \"q\" -> x'71'\n  0 added, 0 removed, 4 changed\n",
		},
		"names and texts that would garble the output": {
			"CREATE TABLE \"a\"\"b\n\"(rowid, \"x y\x1b\")",
			"SELECT 1", "INSERT INTO \"a\"\"b\n\" VALUES(1, 'it''s\n\x1b[31m')",
			"table \"a\\\"b\\n\"\n  + _rowid_=1 rowid=1 x y =\"it's\\n\\x1b[31m\"\n  1 added, 0 removed, 0 changed\n",
		},
		"a table that hides the number of its rows": {
			"CREATE TABLE t(rowid, _rowid_, oid)",
			"INSERT INTO t VALUES(1, 2, 3), (4, 5, 6)", "INSERT INTO t VALUES(4, 5, 6), (1, 2, 9)",
			"table \"t\"\n  - rowid=1 _rowid_=2 oid=3\n  + rowid=1 _rowid_=2 oid=9\n  1 added, 1 removed, 0 changed\n",
		},
		"generated columns": {
			"CREATE TABLE t(id INTEGER PRIMARY KEY, a, b AS (a+1), c AS (a+2) STORED)",
			"INSERT INTO t VALUES(1, 1)", "INSERT INTO t VALUES(1, 2)",
			"table \"t\"\n  ~ id=1  a: 1 -> 2\n  0 added, 0 removed, 1 changed\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := difference(t, []string{test.schema, test.before}, []string{test.schema, test.after}, text)
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestDiffNamesWhatBecameOfTheSchema(t *testing.T) {
	got := difference(t, []string{
		"CREATE TABLE gone(x); INSERT INTO gone VALUES(1)",
		"CREATE TABLE grown(x); INSERT INTO grown VALUES(1), (2), (3)",
		"CREATE TABLE rebuilt(x PRIMARY KEY); INSERT INTO rebuilt VALUES(1)",
		"CREATE INDEX i ON grown(x)",
	}, []string{
		"CREATE TABLE new(x); INSERT INTO new VALUES(1)",
		"CREATE TABLE grown(x, y DEFAULT 7); INSERT INTO grown VALUES(1, 7), (2, 8), (9, 7)",
		"CREATE TABLE rebuilt(x PRIMARY KEY) WITHOUT ROWID; INSERT INTO rebuilt VALUES(1)",
		"CREATE VIEW v AS SELECT\n1",
	}, text)
	for _, line := range []string{
		`table "gone" was dropped: CREATE TABLE gone(x)`, `table "new" is new: CREATE TABLE new(x)`,
		"table \"grown\" was altered\n  before: CREATE TABLE grown(x)\n  after:  CREATE TABLE grown(x, y DEFAULT 7)",
		`view "v" is new: CREATE VIEW v AS SELECT 1`, `index "i" was dropped`,
		"table \"gone\"\n  - rowid=1 x=1\n", "table \"new\"\n  + rowid=1 x=1\n",
		"table \"grown\"\n  ~ rowid=2  y: NULL -> 8\n  ~ rowid=3  x: 3 -> 9\n  0 added, 0 removed, 2 changed\n",
		"table \"rebuilt\"\n  - rowid=1 x=1\n  + x=1\n  1 added, 1 removed, 0 changed\n",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
}

func TestDiffCutsWhatIsBig(t *testing.T) {
	schema := "CREATE TABLE t(id INTEGER PRIMARY KEY, b, s)"
	got := difference(t,
		[]string{schema, "INSERT INTO t VALUES(1, zeroblob(3000000), 'x'), (2, zeroblob(9), 'x')"},
		[]string{schema, "INSERT INTO t VALUES(1, CAST(zeroblob(2999999) || x'01' AS BLOB), 'x'), (2, zeroblob(9), replace(hex(zeroblob(3000)), '0', 'ä'))"}, text)
	if len(got) > 10000 {
		t.Fatalf("got %d bytes", len(got))
	}
	for _, part := range []string{"~ id=1  b: x'0000", "00'... (3000000 bytes) -> x'00", "~ id=2  s: \"x\" -> \"ää", "ä\"... (12000 bytes)", "2 changed"} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in %s", part, got)
		}
	}
}

func TestDiffOfWideTables(t *testing.T) {
	for _, n := range []int{400, 1999} {
		var names, values []string
		for i := range n {
			names, values = append(names, fmt.Sprintf("c%d", i)), append(values, "1")
		}
		schema := "CREATE TABLE t(id INTEGER PRIMARY KEY, " + strings.Join(names, ", ") + ")"
		before := "INSERT INTO t VALUES(1, " + strings.Join(values, ", ") + ")"
		after := before + "; INSERT INTO t SELECT 2, " + strings.Join(names, ", ") + " FROM t; UPDATE t SET c398 = 2 WHERE id = 1"
		got := difference(t, []string{schema, before}, []string{schema, after}, text)
		if !strings.Contains(got, "~ id=1") || !strings.Contains(got, "+ id=2") || !strings.Contains(got, "1 added, 0 removed, 1 changed") {
			t.Errorf("%d columns: got %s", n, got)
		}
	}
}

func TestDiffOfAFullTextTableComparesWhatItStores(t *testing.T) {
	schema := "CREATE VIRTUAL TABLE f USING fts4(x)"
	got := difference(t, []string{schema, "INSERT INTO f VALUES('one')"}, []string{schema, "INSERT INTO f VALUES('two')"}, text)
	if !strings.Contains(got, "table \"f_content\"\n  ~ docid=1  c0x: \"one\" -> \"two\"") || strings.Contains(got, "table \"f\"") {
		t.Errorf("got %s", got)
	}
}

func TestDiffAsJSON(t *testing.T) {
	schema := "CREATE TABLE t(id INTEGER PRIMARY KEY, b, a)"
	got := difference(t,
		[]string{schema, "INSERT INTO t VALUES(1, 'x', 9007199254740993), (4, 0, 1), (2, 1e999, NULL)"},
		[]string{schema, "INSERT INTO t VALUES(1, x'0001', 1.5), (4, 0, 1.0), (3, CAST(x'ff' AS TEXT), zeroblob(2000))", "CREATE INDEX i ON t(a)"},
		func(w *strings.Builder) quarantine.Sink { return quarantine.JSON(w) })
	want := `{"schema":{"type":"index","name":"i","after":"CREATE INDEX i ON t(a)"}}
{"row":{"table":"t","change":"removed","key":{"id":2},"before":{"b":"+Inf","a":null}}}
{"row":{"table":"t","change":"changed","key":{"id":1},"before":{"b":"x","a":9007199254740993},"after":{"b":{"blob":"AAE=","bytes":2},"a":1.5}}}
{"row":{"table":"t","change":"changed","key":{"id":4},"before":{"a":1},"after":{"a":1.0}}}
{"row":{"table":"t","change":"added","key":{"id":3},"after":{"b":{"blob":"/w==","bytes":1},"a":{"blob":"`
	if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, `,"bytes":2000}}}}`+"\n"+`{"table":{"name":"t","added":1,"removed":1,"changed":2}}`+"\n") {
		t.Errorf("got %s", got)
	}
	for line := range strings.Lines(got) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}
