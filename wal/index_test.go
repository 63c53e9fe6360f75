package wal_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/tidemark-io/tidemark/wal"
)

func (d *database) index() wal.IndexHeader {
	d.Helper()
	h, err := wal.ReadIndexHeader(bytes.NewReader(d.file("-shm")))
	if err != nil {
		d.Fatal(err)
	}
	return h
}

func TestTheIndexAgreesWithTheLog(t *testing.T) {
	pageSizes(t, func(t *testing.T, pageSize int) {
		d := newDatabase(t, pageSize)
		d.insert(30, 1000)
		log, got := d.file("-wal"), d.index()
		s := everything(t, log)
		at := wal.Mark{Salt1: got.Salt1, Salt2: got.Salt2, Frames: got.MaxFrame, Sum: got.FrameSum}
		if !got.Initialized || got.BigEndianChecksum || int(got.PageSize) != pageSize || at != s.To || got.Pages != s.Commit {
			t.Errorf("got %+v, want what %+v says", got, s)
		}
		change := got.Change
		d.insert(1, 10)
		if got := d.index(); got.Change != change+1 || got.MaxFrame <= s.To.Frames {
			t.Errorf("after another commit: %+v, before: %+v", got, s)
		}
	})
}

func TestTheIndexTellsHowFarACheckpointCame(t *testing.T) {
	d := newDatabase(t, 4096)
	d.insert(30, 1000)
	reader := openDatabase(t, d.path)
	reader.exec("BEGIN")
	reader.image()
	at := d.index()
	if at.Backfilled != 0 || !slices.Contains(at.ReadMarks[1:], at.MaxFrame) {
		t.Errorf("with a reader: %+v, want it to stand at %d", at, at.MaxFrame)
	}
	d.insert(30, 1000)
	d.exec("PRAGMA wal_checkpoint(PASSIVE)")
	if got := d.index(); got.Backfilled != at.MaxFrame || got.BackfillAttempted != at.MaxFrame || got.MaxFrame <= at.MaxFrame {
		t.Errorf("after a checkpoint behind a reader: %+v, want %d backfilled", got, at.MaxFrame)
	}
	reader.exec("ROLLBACK")
	d.exec("PRAGMA wal_checkpoint(PASSIVE)")
	if got := d.index(); got.Backfilled != got.MaxFrame {
		t.Errorf("after a whole checkpoint: %+v", got)
	}
}

func TestTheIndexIsAheadOfTheLogAfterATruncatingCheckpoint(t *testing.T) {
	d := newDatabase(t, 4096)
	before := d.index()
	d.exec("PRAGMA wal_checkpoint(TRUNCATE)")
	if got := d.index(); got.Salt1 != before.Salt1+1 || got.MaxFrame != 0 {
		t.Errorf("got %+v after %+v", got, before)
	}
}

func TestAHalfWrittenIndexIsBusy(t *testing.T) {
	shm := newDatabase(t, 4096).file("-shm")
	for i := range 96 {
		bad := slices.Clone(shm)
		bad[i] ^= 1
		if _, err := wal.ReadIndexHeader(bytes.NewReader(bad)); !errors.Is(err, wal.ErrBusy) {
			t.Fatalf("one copy changed at byte %d: %v, want ErrBusy", i, err)
		}
		bad[(i+48)%96] ^= 1
		if _, err := wal.ReadIndexHeader(bytes.NewReader(bad)); !errors.Is(err, wal.ErrBusy) {
			t.Fatalf("both copies changed at byte %d: %v, want ErrBusy", i%48, err)
		}
	}
}

func TestAnIndexThatIsNotThereIsEmpty(t *testing.T) {
	for _, n := range []int{0, 135} {
		if _, err := wal.ReadIndexHeader(bytes.NewReader(make([]byte, n))); !errors.Is(err, wal.ErrEmpty) {
			t.Errorf("%d bytes: %v, want ErrEmpty", n, err)
		}
	}
	got, err := wal.ReadIndexHeader(bytes.NewReader(make([]byte, 32768)))
	if err != nil || got.Initialized {
		t.Errorf("all zero: %+v, %v, want not initialized", got, err)
	}
}

func TestAnIndexOfAnotherVersionIsInvalid(t *testing.T) {
	shm := slices.Clone(newDatabase(t, 4096).file("-shm"))
	binary.NativeEndian.PutUint32(shm, 3007001)
	sum := plainSum(binary.NativeEndian, [2]uint32{}, shm[:40])
	binary.NativeEndian.PutUint32(shm[40:], sum[0])
	binary.NativeEndian.PutUint32(shm[44:], sum[1])
	copy(shm[48:], shm[:48])
	if _, err := wal.ReadIndexHeader(bytes.NewReader(shm)); !errors.Is(err, wal.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
}
