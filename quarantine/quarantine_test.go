package quarantine_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/quarantine"
)

// setArg is the first argument of a test binary that is to set a database
// aside and print what comes of it.
const setArg = "quarantine-set"

func TestMain(m *testing.M) {
	testdb.RunWriter()
	if len(os.Args) > 3 && os.Args[1] == setArg {
		fmt.Println(child(os.Args[2], os.Args[3], os.Args[4:]))
		os.Exit(0)
	}
	flag.Parse()
	os.Exit(m.Run())
}

func child(dir, database string, files []string) error {
	_, err := quarantine.Set(context.Background(), dir, quarantine.Input{Database: database, Files: files})
	return err
}

// place is a database with a WAL that nobody has open, and where it is set
// aside.
type place struct {
	t        *testing.T
	database string
	dir      string
	input    quarantine.Input
}

// newPlace lays out a database with a statement each for its file and its WAL.
func newPlace(t *testing.T, inFile, inWAL string) *place {
	t.Helper()
	path := filepath.Join(t.TempDir(), "live.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "PRAGMA wal_autocheckpoint=0", inFile, "PRAGMA wal_checkpoint(TRUNCATE)", inWAL)
	return left(t, path, "-wal")
}

// left copies a database as a crash would leave it.
func left(t *testing.T, path string, part string) *place {
	t.Helper()
	home := t.TempDir()
	p := &place{t: t, database: filepath.Join(home, "app ?#%.db"), dir: filepath.Join(home, "quarantine")}
	for _, part := range []string{"", part} {
		b, err := os.ReadFile(path + part)
		if err == nil {
			err = os.WriteFile(p.database+part, b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(home, "0-0000000000000002-0000000000000002.ltx")
	if err := os.WriteFile(file, []byte("ltx"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.input = quarantine.Input{Database: p.database, Files: []string{file}, Manifest: quarantine.Manifest{
		Node: "a", First: 2, Last: 4,
		Base:    quarantine.Position{TXID: 1, Checksum: 1},
		Local:   quarantine.Side{Generation: 17, At: quarantine.Position{TXID: 2, Checksum: 2}},
		Chain:   quarantine.Side{Generation: 18, At: quarantine.Position{TXID: 2, Checksum: 3}},
		Foreign: quarantine.Object{Key: "0000/2.ltx", Size: 182, ETag: "x"},
	}}
	return p
}

func (p *place) set() quarantine.Entry {
	p.t.Helper()
	e, err := quarantine.Set(p.t.Context(), p.dir, p.input)
	if err != nil {
		p.t.Fatal(err)
	}
	return e
}

// list returns the entries, which must be so many.
func (p *place) list(want int) []quarantine.Entry {
	p.t.Helper()
	entries, err := quarantine.List(p.dir)
	if err != nil || len(entries) != want {
		p.t.Fatalf("got %d entries and %v, want %d", len(entries), err, want)
	}
	return entries
}

// names lists a directory.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// picture is the content of the files of the database and of its directory.
func (p *place) picture() string {
	p.t.Helper()
	var all strings.Builder
	for _, part := range []string{"", "-wal", "-journal", "-shm"} {
		b, err := os.ReadFile(p.database + part)
		fmt.Fprintf(&all, "%s %x %t\n", part, b, err == nil)
	}
	return all.String()
}

// build makes a database that is closed.
func build(t *testing.T, statements ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "base.db")
	db, err := sql.Open("sqlite3", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	testdb.Exec(t, db, statements...)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
