package ltx_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/pierrec/lz4/v4"

	"github.com/tidemark-io/tidemark/ltx"
)

// entries returns what the index in b names.
func entries(b []byte) (all []ltx.Entry, err error) {
	x, err := ltx.ReadIndex(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	for e, err := range x.Entries() {
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

func TestIndexNamesEachFrame(t *testing.T) {
	var pgnos []uint32
	for pgno := uint32(1); pgno <= 20000; pgno += 2 {
		pgnos = append(pgnos, pgno) // enough for several chunks
	}
	for name, s := range map[string]*ltx.Spec{
		"many": fileOf(9, 512, 20000, pgnos...), "few": fileOf(9, 4096, 9, 1, 2, 8), "none": fileOf(9, 512, 4),
		"around the lock page": files(65536)["around the lock page"],
	} {
		for form, b := range map[string][]byte{"new": encode(t, s), "old": oldForm(t, s, lz4.BlockSizeOption(lz4.Block64Kb))} {
			all, err := entries(b)
			if err != nil {
				t.Fatal(err)
			}
			if len(all) != len(s.Pages) {
				t.Fatalf("%s, %s: %d entries, want %d", name, form, len(all), len(s.Pages))
			}
			buf := make([]byte, s.Header.PageSize)
			for i, e := range all {
				f, err := ltx.DecodeFrame(b[e.Offset:e.Offset+e.Size], s.Header.PageSize, buf)
				if err != nil {
					t.Fatalf("%s, %s: page %d: %v", name, form, e.Pgno, err)
				}
				want := s.Pages[i]
				if f.Pgno != want.Pgno || !bytes.Equal(f.Page, want.Data) || f.Sum != ltx.ChecksumPage(want.Pgno, want.Data) {
					t.Errorf("%s, %s: page %d is not as written", name, form, e.Pgno)
				}
			}
		}
	}
}

func TestDecodeFrameWantsExactlyOneFrame(t *testing.T) {
	s := fileOf(2, 512, 3, 2)
	for form, b := range map[string][]byte{"new": encode(t, s), "old": oldForm(t, s)} {
		all, err := entries(b)
		if err != nil {
			t.Fatal(err)
		}
		frame := b[all[0].Offset:][:all[0].Size]
		for size := range frame {
			if _, err := ltx.DecodeFrame(frame[:size], 512, make([]byte, 512)); !errors.Is(err, ltx.ErrCorrupt) {
				t.Errorf("%s: cut to %d bytes: %v", form, size, err)
			}
		}
		more := append(bytes.Clone(frame), 0)
		if _, err := ltx.DecodeFrame(more, 512, make([]byte, 512)); !errors.Is(err, ltx.ErrCorrupt) {
			t.Errorf("%s: a byte more: %v", form, err)
		}
		if _, err := ltx.DecodeFrame(frame, 1024, make([]byte, 1024)); !errors.Is(err, ltx.ErrCorrupt) {
			t.Errorf("%s: other page size: %v", form, err)
		}
		if _, err := ltx.DecodeFrame(frame, 512, make([]byte, 511)); err == nil {
			t.Errorf("%s: short buffer was accepted", form)
		}
	}
}

// withIndex returns a file of s whose index is replaced.
func withIndex(t *testing.T, s *ltx.Spec, index []byte) []byte {
	t.Helper()
	b := encode(t, s)
	old := int(binary.BigEndian.Uint64(b[len(b)-ltx.TrailerSize-8:]))
	tail := b[len(b)-ltx.TrailerSize:]
	b = append(bytes.Clone(b[:len(b)-ltx.TrailerSize-8-old]), index...)
	b = binary.BigEndian.AppendUint64(b, uint64(len(index)))
	return append(b, tail...)
}

func TestAnIndexThatDoesNotFitIsCorrupt(t *testing.T) {
	s := fileOf(2, 512, 9, 3, 5)
	all, err := entries(encode(t, s))
	if err != nil {
		t.Fatal(err)
	}
	record := func(e ltx.Entry) []byte {
		b := binary.AppendUvarint(nil, uint64(e.Pgno))
		b = binary.AppendUvarint(b, uint64(e.Offset))
		return binary.AppendUvarint(b, uint64(e.Size))
	}
	first, second := record(all[0]), record(all[1])
	moved, large := all[1], all[1]
	moved.Offset++
	large.Size++
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	end := []byte{0}
	for name, index := range map[string][]byte{
		"nothing":          {},
		"no end":           join(first, second),
		"early end":        join(first, end, second),
		"bytes after end":  join(first, second, end, end),
		"lacks the last":   join(first, end),
		"lacks the first":  join(second, end),
		"twice":            join(first, first, second, end),
		"backwards":        join(second, first, end),
		"moved":            join(first, record(moved), end),
		"large":            join(first, record(large), end),
		"long number":      join([]byte{0x83, 0}, first[1:], second, end),
		"number too large": join(bytes.Repeat([]byte{0xff}, 9), []byte{1}, first[1:], second, end),
		"cut":              join(first, second[:2]),
	} {
		b := withIndex(t, s, index)
		if _, err := entries(b); !errors.Is(err, ltx.ErrCorrupt) {
			t.Errorf("%s: entries: %v", name, err)
		}
		if _, _, err := ltx.VerifyFile(bytes.NewReader(b)); !errors.Is(err, ltx.ErrCorrupt) {
			t.Errorf("%s: verify: %v", name, err)
		}
	}
	renamed := all[1]
	renamed.Pgno++ // plausible, but not the page that is there
	if _, _, err := ltx.VerifyFile(bytes.NewReader(withIndex(t, s, join(first, record(renamed), end)))); !errors.Is(err, ltx.ErrCorrupt) {
		t.Errorf("other page number: %v", err)
	}
}

func TestReadIndexNoticesDamageAtTheEnd(t *testing.T) {
	b := encode(t, fileOf(2, 512, 9, 3, 5))
	for size := range b {
		if _, err := entries(b[:size]); !errors.Is(err, ltx.ErrCorrupt) {
			t.Errorf("cut to %d bytes: %v", size, err)
		}
	}
	if _, err := ltx.ReadIndex(bytes.NewReader(b), int64(len(b))+1); !errors.Is(err, ltx.ErrCorrupt) {
		t.Errorf("size too large: %v", err)
	}
}
