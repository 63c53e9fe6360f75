package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/tidemark-io/tidemark/wal"
)

func pageSizes(t *testing.T, test func(t *testing.T, pageSize int)) {
	for size := 512; size <= 65536; size *= 2 {
		t.Run(fmt.Sprint(size), func(t *testing.T) { test(t, size) })
	}
}

// mirror follows a database by segments alone.
type mirror struct {
	*database
	image []byte
	mark  wal.Mark
}

func newMirror(d *database) *mirror {
	log := d.file("-wal")
	return &mirror{database: d, image: d.file(""), mark: header(d, log).Start()}
}

// follow takes what was committed since and compares.
func (m *mirror) follow(want wal.Verdict) wal.Segment {
	m.Helper()
	log := m.file("-wal")
	verdict, err := wal.Resume(bytes.NewReader(log), m.mark)
	if err != nil || verdict != want {
		m.Fatalf("resume: %v, %v, want %v", verdict, err, want)
	}
	h := header(m, log)
	if verdict == wal.Restarted {
		m.mark = h.Start()
	}
	s := committed(m, log, m.mark, wal.Limit{})
	m.image, m.mark = apply(m.image, log, s, h.PageSize), s.To
	if !bytes.Equal(m.image, m.database.image()) {
		m.Fatal("the segments do not give the pages that SQLite reads")
	}
	return s
}

func TestSegmentsGiveThePagesThatSQLiteReads(t *testing.T) {
	pageSizes(t, func(t *testing.T, pageSize int) {
		d := newDatabase(t, pageSize)
		m := newMirror(d)
		m.follow(wal.Continues)
		for generation := range 3 {
			d.insert(20, 2*pageSize)
			m.follow([]wal.Verdict{wal.Continues, wal.Restarted, wal.Restarted}[generation])
			d.insert(1, 10)
			d.exec("UPDATE t SET b = randomblob(100) WHERE id % 3 = 0")
			if got := m.follow(wal.Continues).Commits; got != 2 {
				t.Fatalf("%d commits, want 2", got)
			}
			d.exec("DELETE FROM t WHERE id % 2 = 0")
			d.exec("VACUUM")
			m.follow(wal.Continues)
			m.follow(wal.Continues)
			d.restart()
			m.follow(wal.Continues)
		}
	})
}

func TestFramesBeforeCOMMITAreNotReturned(t *testing.T) {
	for _, end := range []string{"COMMIT", "ROLLBACK"} {
		t.Run(end, func(t *testing.T) {
			d := newDatabase(t, 1024)
			m := newMirror(d)
			m.follow(wal.Continues)
			before := len(d.file("-wal"))
			d.exec("BEGIN")
			d.insert(200, 500)
			log := d.file("-wal")
			if len(log) < before+50_000 {
				t.Fatalf("the log grew from %d to %d bytes only: nothing was spilled", before, len(log))
			}
			if s := committed(t, log, m.mark, wal.Limit{}); s.Commits != 0 || s.To != m.mark || s.Commit != 0 || len(s.Pages) != 0 {
				t.Fatalf("got a segment of frames before COMMIT: %+v", s)
			}
			d.exec(end)
			got := m.follow(wal.Continues).Commits
			if want := map[string]int{"COMMIT": 1, "ROLLBACK": 0}[end]; got != want {
				t.Fatalf("%d commits after %s, want %d", got, end, want)
			}
			d.insert(3, 100) // over the frames of a rolled back transaction
			m.follow(wal.Continues)
		})
	}
}

func TestStaleFramesOfTheGenerationBeforeAreNotReturned(t *testing.T) {
	d := newDatabase(t, 4096)
	d.insert(100, 4000)
	old := everything(t, d.file("-wal"))
	d.restart()
	d.insert(1, 10)
	log := d.file("-wal")
	s := everything(t, log)
	if s.Commits != 1 || s.To.Frames >= old.To.Frames {
		t.Fatalf("got %d commits, %d frames after a restart", s.Commits, s.To.Frames)
	}
	if int64(len(log)) < wal.FrameOffset(old.To.Frames, 4096) {
		t.Fatal("there are no stale frames")
	}
	if got := apply(d.file(""), log, s, 4096); !bytes.Equal(got, d.image()) {
		t.Fatal("the segment does not give the pages that SQLite reads")
	}
}

func TestBothByteOrdersOfTheChecksumAreRead(t *testing.T) {
	pageSizes(t, func(t *testing.T, pageSize int) {
		d := newDatabase(t, pageSize)
		d.insert(30, 1000)
		d.insert(1, 10)
		little := d.file("-wal")
		big := seal(little, pageSize, true)
		want, got := everything(t, little), everything(t, big)
		if !header(t, big).BigEndian || header(t, little).BigEndian || got.To.Sum == want.To.Sum {
			t.Fatal("the checksums have the same byte order")
		}
		if got.Commits != want.Commits || got.Commit != want.Commit || !reflect.DeepEqual(got.Pages, want.Pages) {
			t.Fatalf("big endian: %+v, want %+v", got, want)
		}
		path := filepath.Join(t.TempDir(), "big.db")
		if err := errors.Join(os.WriteFile(path, d.file(""), 0o600), os.WriteFile(path+"-wal", big, 0o600)); err != nil {
			t.Fatal(err)
		}
		copied := openDatabase(t, path)
		if !bytes.Equal(copied.image(), d.image()) {
			t.Fatal("SQLite itself does not read the log that the test made")
		}
		if !copied.index().BigEndianChecksum || d.index().BigEndianChecksum {
			t.Error("the index does not tell the byte orders apart")
		}
	})
}
