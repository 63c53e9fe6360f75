package wal_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/tidemark-io/tidemark/wal"
)

// small is a log short enough to damage everywhere.
func small(t testing.TB) []byte {
	d := newDatabase(t, 512)
	for range 3 {
		d.insert(2, 300)
	}
	return d.file("-wal")
}

// before returns the last border within the first n bytes.
func before(marks []wal.Mark, n int) wal.Mark {
	at := marks[0]
	for _, m := range marks {
		if headerSize+int(m.Frames)*(frameHeaderSize+512) <= n {
			at = m
		}
	}
	return at
}

func TestATruncatedLogEndsAtTheLastWholeCommit(t *testing.T) {
	log := small(t)
	h := header(t, log)
	marks := borders(log, h)
	for n := range log {
		r := bytes.NewReader(log[:n])
		if _, err := wal.ReadHeader(r); (n < headerSize) != errors.Is(err, wal.ErrEmpty) {
			t.Fatalf("header of %d bytes: %v", n, err)
		}
		s, err := wal.Committed(r, h, h.Start(), wal.Limit{})
		if want := before(marks, n); err != nil || s.To != want {
			t.Fatalf("%d bytes: to %v, %v, want %v", n, s.To, err, want)
		}
		end := marks[len(marks)-1]
		if v, err := wal.Resume(r, end); err != nil || (v == wal.Lost) != (n < headerSize+int(end.Frames-1)*536+frameHeaderSize) {
			t.Fatalf("%d bytes: resume %v, %v", n, v, err)
		}
	}
}

func TestAFlippedBitEndsTheLogBeforeIt(t *testing.T) {
	log := small(t)
	h := header(t, log)
	marks := borders(log, h)
	for i := range log {
		bad := slices.Clone(log)
		bad[i] ^= 1 << (i % 8)
		r := bytes.NewReader(bad)
		if _, err := wal.ReadHeader(r); (i < headerSize) != errors.Is(err, wal.ErrInvalid) {
			t.Fatalf("bit of byte %d: header: %v", i, err)
		}
		s, err := wal.Committed(r, h, h.Start(), wal.Limit{})
		if want := before(marks, max(i, headerSize)); i >= headerSize && (err != nil || s.To != want) {
			t.Fatalf("bit of byte %d: to %v, %v, want %v", i, s.To, err, want)
		}
	}
}

func TestAHeaderThatIsNotSQLitesIsInvalid(t *testing.T) {
	log := small(t)
	for name, damage := range map[string]func([]byte){
		"magic":            func(b []byte) { b[0] = 0 },
		"version":          func(b []byte) { b[7]++ },
		"page size 0":      func(b []byte) { b[10], b[11] = 0, 0 },
		"page size 513":    func(b []byte) { b[11]++ },
		"page size 256":    func(b []byte) { b[10], b[11] = 1, 0 },
		"page size 131072": func(b []byte) { b[9], b[10] = 2, 0 },
	} {
		t.Run(name, func(t *testing.T) {
			bad := slices.Clone(log[:headerSize])
			damage(bad)
			putSum(bad[24:], plainSum(order(false), [2]uint32{}, bad[:24]))
			if _, err := wal.ReadHeader(bytes.NewReader(bad)); !errors.Is(err, wal.ErrInvalid) {
				t.Errorf("got %v, want ErrInvalid", err)
			}
		})
	}
}

func TestAnAllZeroHeaderIsAnEmptyLog(t *testing.T) {
	if _, err := wal.ReadHeader(bytes.NewReader(make([]byte, 4096))); !errors.Is(err, wal.ErrEmpty) {
		t.Errorf("got %v, want ErrEmpty", err)
	}
}

var errDisk = errors.New("disk on fire")

// burning fails every read that reaches beyond its first bytes.
type burning []byte

func (b burning) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > int64(len(b)) {
		return 0, errDisk
	}
	return copy(p, b[off:]), nil
}

var _ io.ReaderAt = burning(nil)

func TestErrorsOfTheReaderPassThrough(t *testing.T) {
	log := small(t)
	h, s := header(t, log), everything(t, log)
	if _, err := wal.ReadHeader(burning(log[:31])); !errors.Is(err, errDisk) {
		t.Errorf("ReadHeader: %v", err)
	}
	if _, err := wal.Committed(burning(log[:40]), h, h.Start(), wal.Limit{}); !errors.Is(err, errDisk) {
		t.Errorf("Committed: %v", err)
	}
	for _, n := range []int{10, 40} {
		if _, err := wal.Resume(burning(log[:n]), s.To); !errors.Is(err, errDisk) {
			t.Errorf("Resume: %v", err)
		}
	}
	if _, err := wal.ReadIndexHeader(burning(nil)); !errors.Is(err, errDisk) {
		t.Errorf("ReadIndexHeader: %v", err)
	}
}
