package live_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/live"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// read returns all pages of a database as the view sees them.
func read(t *testing.T, v *live.View) []byte {
	t.Helper()
	var all bytes.Buffer
	err := v.Each(t.Context(), func(pgno uint32, page []byte) error {
		if want := uint32(all.Len())/v.PageSize() + 1; pgno != want {
			return fmt.Errorf("page %d, want %d", pgno, want)
		}
		_, err := all.Write(page)
		return err
	})
	if err != nil || all.Len() != int(v.Pages()*v.PageSize()) {
		t.Fatalf("%v; %d bytes of %d pages", err, all.Len(), v.Pages())
	}
	return all.Bytes()
}

func TestAViewIsOneCommitWhateverOthersDo(t *testing.T) {
	for _, mode := range []string{"WAL", "DELETE"} {
		for _, checkpointed := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, checkpointed), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "live 100%.db")
				db := testdb.Create(t, path, testdb.Options{JournalMode: mode})
				testdb.Exec(t, db, "CREATE TABLE t(x)", "INSERT INTO t VALUES (randomblob(9000))")
				if checkpointed {
					testdb.Exec(t, db, "PRAGMA wal_checkpoint(TRUNCATE)")
				}
				v, err := live.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				before := read(t, v)
				if mode == "WAL" {
					for range 30 {
						testdb.Exec(t, db, "INSERT INTO t VALUES (randomblob(9000))", "PRAGMA wal_checkpoint(PASSIVE)")
					}
					if !bytes.Equal(read(t, v), before) {
						t.Error("the view moved")
					}
				}
				if err := v.Close(); err != nil {
					t.Fatal(err)
				}
				testdb.Exec(t, db, "PRAGMA wal_checkpoint(TRUNCATE)")
				if v, err = live.Open(path); err != nil {
					t.Fatal(err)
				}
				defer v.Close()
				if want, err := os.ReadFile(path); err != nil || !bytes.Equal(read(t, v), want) {
					t.Errorf("the view is not what the file holds, %v", err)
				}
			})
		}
	}
}

func TestAViewOfNothingIsAnErrorAndMakesNothing(t *testing.T) {
	dir := t.TempDir()
	junk := filepath.Join(dir, "junk")
	if err := os.WriteFile(junk, bytes.Repeat([]byte("junk"), 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "absent"), junk, dir} {
		if v, err := live.Open(path); err == nil {
			t.Errorf("%s: got %+v", path, v)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v were left", entries, err)
	}
}
