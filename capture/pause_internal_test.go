package capture

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/filelock"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// inPause returns an image of a database whose reading has just begun, and its
// file, through which this test plays another process.
func inPause(t *testing.T, dated bool) (*image, *os.File) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.db")
	if err := testdb.Create(t, path, testdb.Options{JournalMode: "DELETE"}).Close(); err != nil {
		t.Fatal(err)
	}
	db, err := openDatabase(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.close() })
	db.ticks = db.ticks && dated
	im, err := db.newestStill()
	for deadline := time.Now().Add(10 * time.Second); ; {
		if err = errors.Join(err, im.enter()); err != nil {
			t.Fatal(err)
		}
		if im.dated == db.ticks {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the last write stays in the current tick")
		}
	}
	other, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	return im, other
}

// locksOut takes the lock that SQLite takes before it syncs its journal.
func locksOut(t *testing.T, other *os.File) {
	t.Helper()
	if err := filelock.Set(other, filelock.Write, filelock.SharedFirst, filelock.SharedBytes); err != nil {
		t.Fatal(err)
	}
}

func TestADatabaseIsReadOnUntilItsWriterWritesToTheFile(t *testing.T) {
	im, other := inPause(t, true)
	locksOut(t, other)
	if err := im.check(); (err == nil) != im.dated { // not on every file system
		t.Errorf("nothing is written yet, dated %t: %v", im.dated, err)
	}
	// The same bytes: only the modification time tells.
	if _, err := other.WriteAt([]byte("SQLite format 3\x00"), 0); err != nil {
		t.Fatal(err)
	}
	if err := im.check(); !errors.Is(err, errMoving) {
		t.Errorf("after a write: %v", err)
	}
}

func TestALockEndsTheReadingWhereTimesDoNotTell(t *testing.T) {
	im, other := inPause(t, false)
	if err := im.check(); err != nil {
		t.Errorf("nobody is there: %v", err)
	}
	locksOut(t, other)
	if err := im.check(); !errors.Is(err, errMoving) {
		t.Errorf("somebody may be writing: %v", err)
	}
}

func TestReadingMovesOnToTheNewestState(t *testing.T) {
	im, other := inPause(t, true)
	if _, err := other.WriteAt([]byte{0, 0, 0, 99}, 24); err != nil {
		t.Fatal(err)
	}
	if err := im.check(); !errors.Is(err, errMoving) {
		t.Errorf("after a commit: %v", err)
	}
	if err := errors.Join(im.enter(), im.check()); err != nil || im.counter != 99 {
		t.Errorf("read anew: %v, change counter %d", err, im.counter)
	}
	if err := other.Truncate(int64(im.pages+1) * int64(im.db.pageSize)); err != nil {
		t.Fatal(err)
	}
	if err := im.enter(); !errors.Is(err, errMoving) {
		t.Errorf("it has grown: %v", err)
	}
}
