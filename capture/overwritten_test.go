package capture_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/ltx"
)

// put writes content over what a file holds.
func put(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// twoStates makes a database and returns what its file held before its last
// commit, which took no more pages. Nobody has it open.
func twoStates(t *testing.T, path string) (earlier []byte) {
	t.Helper()
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)", fill, "PRAGMA wal_checkpoint(TRUNCATE)")
	earlier = content(t, path)
	testdb.Exec(t, db, "UPDATE t SET x = randomblob(900) WHERE rowid % 50 = 0", "PRAGMA wal_checkpoint(TRUNCATE)")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return earlier
}

func TestACopyOverTheDatabaseThatKeepsItsTimesIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	earlier := twoStates(t, path)
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	was, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, earlier)
	if err := os.Chtimes(path, was.ModTime(), was.ModTime()); err != nil {
		t.Fatal(err)
	}
	step(t, c)
	m.drain(c.Spool())
	shut(t, c)
	m.equals(path)
}

// meddler is asked for the history of a database, and puts another one in its
// place instead.
type meddler struct {
	*history
	meddle func()
}

func (m meddler) Find(context.Context, ltx.Checksum) (ltx.TXID, error) {
	m.meddle()
	return 0, errors.New("the history cannot be read")
}

func TestFramesOfARemovedWALAreNotCopiedIntoWhatTakesThePlaceOfTheDatabase(t *testing.T) {
	dir := t.TempDir()
	path, app := filepath.Join(dir, "app.db"), filepath.Join(dir, "elsewhere.db")
	earlier := twoStates(t, app)
	db := testdb.Open(t, app)
	testdb.Exec(t, db, "PRAGMA wal_autocheckpoint=0", "DELETE FROM t WHERE rowid % 7 = 0")
	// As after a crash: commits in the WAL, and nobody there.
	put(t, path, content(t, app))
	put(t, path+"-wal", content(t, app+"-wal"))
	c, err := capture.New(path, capture.DefaultConfig(), capture.Options{
		Log: slog.New(slog.DiscardHandler),
		Tip: func(context.Context) (capture.Tip, error) {
			return capture.Tip{Pos: ltx.Pos{TXID: 5, PostApplyChecksum: ltx.ChecksumFlag | 5}, PageSize: 4096, Pages: 1}, nil
		},
		History: meddler{meddle: func() {
			if err := os.Remove(path + "-wal"); err != nil {
				t.Error(err)
			}
			put(t, path, earlier)
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Capture(t.Context()); err == nil {
		t.Fatal("no error")
	}
	shut(t, c)
	if !bytes.Equal(content(t, path), earlier) {
		t.Error("the file holds something else than what was copied over it")
	}
}

func TestAnEarlierStatePutThereRightAfterACheckpointIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE t(x)", fill, "PRAGMA wal_checkpoint(TRUNCATE)")
	m := newModel(t)
	c := capturer(t, path, m)
	step(t, c)
	earlier := content(t, path)
	testdb.Exec(t, db, "UPDATE t SET x = randomblob(900) WHERE rowid = 1500")
	step(t, c)
	m.drain(c.Spool())
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = testdb.Open(t, path)
	testdb.Exec(t, db, "PRAGMA wal_checkpoint(PASSIVE)")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, path, earlier)
	step(t, c)
	m.drain(c.Spool())
	shut(t, c)
	m.equals(path)
	if at := content(t, path); !bytes.Equal(at, earlier) {
		t.Error("the file is not what was put there")
	}
}
