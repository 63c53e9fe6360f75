package quarantine_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/quarantine"
)

const (
	table = "CREATE TABLE t(id INTEGER PRIMARY KEY, x); INSERT INTO t VALUES(1, 'file'), (2, randomblob(20000))"
	more  = "INSERT INTO t VALUES(3, 'wal'), (4, randomblob(9000))"
)

func TestSetKeepsWhatTheWALAloneHolds(t *testing.T) {
	p := newPlace(t, table, more)
	before := p.picture()
	e := p.set()
	if p.picture() != before {
		t.Error("the database was changed")
	}
	if !regexp.MustCompile(`^\d{8}T\d{6}Z-g17-0000000000000002-0000000000000004$`).MatchString(e.ID) {
		t.Errorf("got ID %s", e.ID)
	}
	if got := names(t, e.Path); got != "database.db ltx manifest.json" {
		t.Errorf("the entry holds %s", got)
	}
	listed := p.list(1)[0]
	if listed.Problem != "" || listed.Node != "a" || listed.Foreign.ETag != "x" || listed.Chain.At.Checksum != 3 || listed.Transactions() != 3 {
		t.Errorf("got %+v", listed)
	}
	if got := rows(listed); got != "chain=0 churn=0 t=4" {
		t.Errorf("got rows %s", got)
	}
	out := filepath.Join(t.TempDir(), "out.db")
	if err := listed.Export(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	sum := sumOf(t, out)
	db := testdb.Open(t, p.database) // brings the WAL into the file when it is closed
	testdb.Exec(t, db, "PRAGMA wal_checkpoint(TRUNCATE)")
	testdb.SameDatabase(t, out, p.database)
	if want := sumOf(t, p.database); sum != want || listed.Copy.Checksum != want {
		t.Errorf("the export sums up to %s, the manifest says %s, want %s", sum, listed.Copy.Checksum, want)
	}
}

func rows(e quarantine.Entry) string {
	var all []string
	for _, table := range e.Copy.Tables {
		all = append(all, table.Name+"="+string(rune('0'+table.Rows)))
	}
	return strings.Join(all, " ")
}

// sumOf is the checksum of a database without a WAL.
func sumOf(t *testing.T, path string) ltx.Checksum {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := ltx.Checksum(0)
	for i := range len(b) / 4096 {
		sum ^= ltx.ChecksumPage(uint32(i+1), b[i*4096:(i+1)*4096])
	}
	return sum | ltx.ChecksumFlag
}

func TestSetUndoesWhatWasNotCommitted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "live.db")
	db := testdb.Create(t, path, testdb.Options{JournalMode: "DELETE"})
	testdb.Exec(t, db, table, "PRAGMA cache_size=1", "BEGIN", "UPDATE t SET x = randomblob(400000) WHERE id = 1")
	p := left(t, path, "-journal")
	testdb.Exec(t, db, "ROLLBACK")
	before := p.picture()
	e := p.set()
	if p.picture() != before {
		t.Error("the database was changed")
	}
	testdb.SameDatabase(t, e.Database(), path)
}

func TestEntriesAreForTheirOwnerOnly(t *testing.T) {
	p := newPlace(t, table, more)
	p.set()
	err := filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTwoEntriesOfOneSecondHaveNamesOfTheirOwn(t *testing.T) {
	p := newPlace(t, table, more)
	for range 3 {
		p.set()
	}
	p.list(3)
}

func TestSetBesideAWriterCopiesAStateThatItCommitted(t *testing.T) {
	p := newPlace(t, table, more)
	w := testdb.StartWriter(t, p.database, testdb.Load{})
	for range 5 {
		e := p.set()
		testdb.ChainPrefix(t, e.Database(), p.database)
	}
	w.Stop(t)
	e := p.set()
	testdb.SameDatabase(t, e.Database(), p.database)
}

func TestADamagedDatabaseIsSetAsideAllTheSame(t *testing.T) {
	p := newPlace(t, table, more)
	garbage := make([]byte, 4096)
	f, err := os.OpenFile(p.database, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt(garbage, 0)
	}
	if err := errors.Join(err, f.Close(), os.Remove(p.database+"-wal")); err != nil {
		t.Fatal(err)
	}
	p.set()
	e := p.list(1)[0]
	if e.Problem != "" || e.Copy.Damage == "" {
		t.Fatalf("got %+v", e)
	}
	out := filepath.Join(t.TempDir(), "out.db")
	if err := e.Export(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(p.database)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(out); err != nil || string(got) != string(want) {
		t.Errorf("the export is not what was found: %v", err)
	}
}

func TestWithoutADatabaseNothingIsSetAside(t *testing.T) {
	p := newPlace(t, table, more)
	p.input.Database += ".gone"
	if _, err := quarantine.Set(t.Context(), p.dir, p.input); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if got := names(t, p.dir); got != "" {
		t.Errorf("%s was left", got)
	}
}
