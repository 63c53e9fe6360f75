package wal_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/tidemark-io/tidemark/wal"
)

// FuzzCommitted compares with a second reading of the format. Most inputs are
// sealed first, so that they get past the checksums.
func FuzzCommitted(f *testing.F) {
	f.Add([]byte{}, uint8(0), uint16(0), uint32(0), uint8(0))
	f.Fuzz(func(t *testing.T, log []byte, mode uint8, frames uint16, size uint32, commits uint8) {
		if mode&1 != 0 {
			log = seal(log, 512<<(mode>>2&1), mode&2 != 0)
		}
		r := bytes.NewReader(log)
		h, err := wal.ReadHeader(r)
		if err != nil {
			if !errors.Is(err, wal.ErrEmpty) && !errors.Is(err, wal.ErrInvalid) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		want := plainCommitted(log, h)
		if got := committed(t, log, h.Start(), wal.Limit{}); !same(got, want) {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
		limit := wal.Limit{Frames: uint32(frames), Bytes: int64(size), Commits: int(commits)}
		s := committed(t, log, h.Start(), limit)
		cut := log[:headerSize+int64(s.To.Frames)*int64(frameHeaderSize+h.PageSize)]
		if want := plainCommitted(cut, h); s.To != want.To || s.Commits != want.Commits {
			t.Fatalf("limit %+v: got %+v\nwant %+v", limit, s, want)
		}
		if v, err := wal.Resume(r, s.To); err != nil || v != wal.Continues {
			t.Fatalf("resume at the end of a segment: %v, %v", v, err)
		}
		if rest := committed(t, log, s.To, wal.Limit{}); rest.To != want.To || rest.Commits+s.Commits != want.Commits {
			t.Fatalf("limit %+v: %+v then %+v, want %+v", limit, s, rest, want)
		}
	})
}

func same(a, b wal.Segment) bool {
	if len(a.Pages) == 0 && len(b.Pages) == 0 {
		a.Pages, b.Pages = nil, nil
	}
	return reflect.DeepEqual(a, b)
}

func FuzzHeader(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, log := range [][]byte{b, seal(b, 512, true), seal(b, 65536, false)} {
			h, err := wal.ReadHeader(bytes.NewReader(log))
			if err == nil && !bytes.Equal(log[:24], seal(log, int(h.PageSize), h.BigEndian)[:24]) {
				t.Fatalf("accepted %x", log[:headerSize])
			}
			if err != nil && !errors.Is(err, wal.ErrEmpty) && !errors.Is(err, wal.ErrInvalid) {
				t.Fatalf("untyped error %v", err)
			}
		}
	})
}

func FuzzIndexHeader(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := wal.ReadIndexHeader(bytes.NewReader(b))
		switch {
		case errors.Is(err, wal.ErrEmpty):
			if len(b) >= 136 {
				t.Fatalf("%d bytes are empty", len(b))
			}
		case errors.Is(err, wal.ErrBusy), errors.Is(err, wal.ErrInvalid):
		case err != nil:
			t.Fatalf("untyped error %v", err)
		case !bytes.Equal(b[:48], b[48:96]) || h.Initialized != (b[12] != 0):
			t.Fatalf("accepted %x as %+v", b[:136], h)
		}
	})
}
