package quarantine_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/quarantine"
)

func TestDiffSeesTheNewestStateOfADatabaseInUse(t *testing.T) {
	p := newPlace(t, table, more)
	e := p.set()
	db := testdb.Open(t, p.database)
	testdb.Exec(t, db, "DELETE FROM t WHERE id = 4")
	var out strings.Builder
	if err := e.Diff(t.Context(), p.database, quarantine.Text(&out)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "+ id=4") || !strings.HasSuffix(out.String(), "1 added, 0 removed, 0 changed\n") {
		t.Errorf("got %s", out.String())
	}
	if got := names(t, e.Path); got != "database.db ltx manifest.json" {
		t.Errorf("the entry holds %s now", got)
	}
}

func TestDiffGoesOnAfterATableThatCannotBeRead(t *testing.T) {
	schema := []string{
		"CREATE TABLE a(x)", "INSERT INTO a VALUES(zeroblob(100000))", "CREATE TABLE b(x)", "INSERT INTO b VALUES(1)", "CREATE TABLE c(x)",
	}
	p := left(t, build(t, append(schema, "INSERT INTO b VALUES(2)", "INSERT INTO c VALUES(3)")...), "")
	root := testdb.Number(t, testdb.Open(t, p.database), "SELECT rootpage FROM sqlite_schema WHERE name = 'b'")
	f, err := os.OpenFile(p.database, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt([]byte(strings.Repeat("\xff", 4096)), (root-1)*4096)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	e := p.set()
	if e.Copy.Damage == "" {
		t.Error("the damage is not noted")
	}
	var out strings.Builder
	err = e.Diff(t.Context(), build(t, schema...), quarantine.Text(&out))
	if err == nil || !strings.Contains(err.Error(), `table "b"`) {
		t.Errorf("got %v", err)
	}
	if got := out.String(); !strings.Contains(got, "could not be compared: database disk image is malformed") || !strings.Contains(got, "+ rowid=1 x=3") {
		t.Errorf("got %s", got)
	}
}

func TestDiffRefusesWhatIsNoDatabase(t *testing.T) {
	p := newPlace(t, table, more)
	e := p.set()
	for base, want := range map[string]string{
		p.input.Files[0]: "not a database", p.database + ".gone": "unable to open", e.Path: "unable to open",
	} {
		err := e.Diff(t.Context(), base, quarantine.Text(&strings.Builder{}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", base, err)
		}
	}
}

// full is a writer that has room for nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("full")

func TestDiffEndsWithTheErrorOfItsOutput(t *testing.T) {
	e := newPlace(t, table, more).set()
	base := build(t, "CREATE TABLE t(x)")
	for _, sink := range []quarantine.Sink{quarantine.Text(full{}), quarantine.JSON(full{})} {
		if err := e.Diff(t.Context(), base, sink); !errors.Is(err, errFull) {
			t.Errorf("got %v", err)
		}
	}
}
