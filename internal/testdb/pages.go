package testdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
)

// lockByte is where SQLite locks; the page that holds it is never written.
const lockByte = 1 << 30

// SamePages fails the test unless both files are equal byte by byte, but for
// the lock page. Both must be checkpointed and closed: see Checkpoint.
func SamePages(t testing.TB, a, b string, pageSize int64) {
	t.Helper()
	if err := ComparePages(a, b, pageSize); err != nil {
		t.Fatal(err)
	}
}

// ComparePages is SamePages for use outside the goroutine of the test.
func ComparePages(a, b string, pageSize int64) (err error) {
	fa, err := os.Open(a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fa.Close()) }()
	fb, err := os.Open(b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fb.Close()) }()
	bufA, bufB := make([]byte, 16*65536), make([]byte, 16*65536)
	for off := int64(0); ; off += int64(len(bufA)) {
		na, ea := io.ReadFull(fa, bufA)
		nb, eb := io.ReadFull(fb, bufB)
		if na != nb {
			return fmt.Errorf("%s and %s differ in size near byte %d", a, b, off+int64(min(na, nb)))
		}
		if !bytes.Equal(bufA[:na], bufB[:nb]) {
			if pg := firstDiff(bufA[:na], bufB[:nb], off, pageSize); pg > 0 {
				return fmt.Errorf("%s and %s differ in page %d", a, b, pg)
			}
		}
		if ea != nil || eb != nil {
			return errors.Join(atEnd(ea), atEnd(eb))
		}
	}
}

// firstDiff returns the number of the first page that differs, 0 if it is
// none but the lock page.
func firstDiff(a, b []byte, off, pageSize int64) int64 {
	for i := int64(0); i < int64(len(a)); i += pageSize {
		end := min(i+pageSize, int64(len(a)))
		pgno := (off+i)/pageSize + 1
		if !bytes.Equal(a[i:end], b[i:end]) && pgno != lockByte/pageSize+1 {
			return pgno
		}
	}
	return 0
}

func atEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// Checkpoint moves every frame of the write-ahead log into the database file
// and empties the log. Nothing else may have the database open.
func Checkpoint(t testing.TB, path string) {
	t.Helper()
	if err := checkpoint(t.Context(), path); err != nil {
		t.Fatalf("checkpoint %s: %v", path, err)
	}
}

func checkpoint(ctx context.Context, path string) (err error) {
	db, err := connect(path, "rw")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var busy, frames, done int64
	if err := db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &done); err != nil {
		return err
	}
	if busy != 0 {
		return errors.New("another connection is in the way")
	}
	return nil
}
