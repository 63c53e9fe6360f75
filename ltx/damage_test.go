package ltx_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc64"
	"io"
	"reflect"
	"testing"
	"testing/iotest"

	"github.com/pierrec/lz4/v4"

	"github.com/tidemark-io/tidemark/ltx"
)

// oldForm returns the bytes of s in the form in which each page is an LZ4
// frame and no size precedes it.
func oldForm(t testing.TB, s *ltx.Spec, options ...lz4.Option) []byte {
	t.Helper()
	var buf bytes.Buffer
	sum := crc64.New(crc64.MakeTable(crc64.ISO))
	put := func(b []byte) {
		buf.Write(b)
		sum.Write(b)
	}
	header, err := s.Header.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	put(header)
	zw := lz4.NewWriter(nil)
	var index []byte
	for _, p := range s.Pages {
		start := buf.Len()
		put(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(nil, p.Pgno), 0))
		zw.Reset(&buf)
		if err := zw.Apply(options...); err != nil { // the size does not outlast Reset
			t.Fatal(err)
		}
		if _, err := zw.Write(p.Data); err != nil {
			t.Fatal(err)
		}
		if err := zw.Close(); err != nil {
			t.Fatal(err)
		}
		sum.Write(p.Data)
		for _, v := range []uint64{uint64(p.Pgno), uint64(start), uint64(buf.Len() - start)} {
			index = binary.AppendUvarint(index, v)
		}
	}
	index = append(index, 0)
	put(make([]byte, ltx.PageHeaderSize))
	put(index)
	put(binary.BigEndian.AppendUint64(nil, uint64(len(index))))
	put(binary.BigEndian.AppendUint64(nil, uint64(s.PostApply)))
	return binary.BigEndian.AppendUint64(buf.Bytes(), uint64(ltx.ChecksumFlag)|sum.Sum64())
}

// smallFiles are encoded files small enough to try every damage on them.
func smallFiles(t testing.TB) map[string][]byte {
	all := map[string][]byte{}
	for name, s := range files(512) {
		if name != "around the lock page" {
			all[name] = encode(t, s)
			all[name+" by the reference"] = referenceEncode(t, s)
		}
	}
	all["old form"] = oldForm(t, fileOf(3, 512, 8, 1, 8))
	all["old form with block checksums"] = oldForm(t, fileOf(1, 512, 2, 1, 2), lz4.BlockChecksumOption(true), lz4.SizeOption(512))
	zero := fileOf(4, 512, 9, 3)
	clear(zero.Pages[0].Data)
	all["zero page"] = encode(t, zero)
	return all
}

// content reads b as far as it goes.
func content(b []byte) (*ltx.Spec, error) {
	s := new(ltx.Spec)
	_, err := s.ReadFrom(bytes.NewReader(b))
	return s, err
}

// isDamage tells whether err says that a file is damaged.
func isDamage(err error) bool {
	return errors.Is(err, ltx.ErrCorrupt) || errors.Is(err, ltx.ErrChecksum)
}

func TestOldFormIsReadAsTheReferenceReadsIt(t *testing.T) {
	for pageSize := uint32(512); pageSize <= 65536; pageSize *= 2 {
		want := fileOf(1, pageSize, 3, 1, 2, 3)
		for i, options := range [][]lz4.Option{
			nil,
			{lz4.BlockSizeOption(lz4.Block64Kb), lz4.BlockChecksumOption(true), lz4.SizeOption(uint64(pageSize))},
		} {
			b := oldForm(t, want, options...)
			if got := decode(t, b); !reflect.DeepEqual(got, want) {
				t.Errorf("%d, options %d: old form reads differently", pageSize, i)
			}
			if got := referenceDecode(t, b); !reflect.DeepEqual(got, want) {
				t.Errorf("%d, options %d: reference reads the old form differently", pageSize, i)
			}
		}
		if got := decode(t, oldForm(t, want, lz4.ChecksumOption(false))); !reflect.DeepEqual(got, want) {
			t.Errorf("%d: old form without a checksum reads differently", pageSize)
		}
	}
}

func TestEveryTruncationIsAnError(t *testing.T) {
	for name, b := range smallFiles(t) {
		for size := range b {
			if _, err := content(b[:size]); !errors.Is(err, ltx.ErrCorrupt) {
				t.Errorf("%s cut to %d of %d bytes: %v", name, size, len(b), err)
			}
		}
		if _, err := content(append(bytes.Clone(b), 0)); !errors.Is(err, ltx.ErrCorrupt) {
			t.Errorf("%s with a byte more: %v", name, err)
		}
	}
}

// Not even the reference covers compressed bytes by a checksum. A flip there
// may leave another way to say the same page; the page must be the same then.
func TestEveryFlippedByteIsAnErrorOrChangesNoPage(t *testing.T) {
	for name, b := range smallFiles(t) {
		want, err := content(b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for at := range b {
			for _, mask := range []byte{1 << (at % 8), 1 << (at * 5 % 7), 255} {
				b[at] ^= mask
				got, err := content(b)
				b[at] ^= mask
				if err == nil && !reflect.DeepEqual(got, want) {
					t.Errorf("%s: byte %d of %d ^ %02x makes another file", name, at, len(b), mask)
				}
				if err == nil && !inFrame(t, b, at) {
					t.Errorf("%s: byte %d of %d ^ %02x is not noticed", name, at, len(b), mask)
				}
				if err != nil && !isDamage(err) {
					t.Errorf("%s: byte %d of %d ^ %02x: %v", name, at, len(b), mask, err)
				}
			}
		}
	}
}

// inFrame tells whether byte at of file b is compressed content.
func inFrame(t *testing.T, b []byte, at int) bool {
	t.Helper()
	x, err := ltx.ReadIndex(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range x.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		const header = ltx.PageHeaderSize + 4
		if int64(at) >= e.Offset+header && int64(at) < e.Offset+e.Size {
			return true
		}
	}
	return false
}

func TestErrorsOfTheReaderPassThrough(t *testing.T) {
	b := encode(t, fileOf(1, 512, 3, 1, 2, 3))
	for size := range b {
		broken := io.MultiReader(bytes.NewReader(b[:size]), iotest.ErrReader(io.ErrClosedPipe))
		_, _, err := ltx.VerifyFile(broken)
		if !errors.Is(err, io.ErrClosedPipe) || isDamage(err) {
			t.Errorf("reader that breaks after %d of %d bytes: %v", size, len(b), err)
		}
	}
}

func TestReadersMayReturnAsLittleAsTheyLike(t *testing.T) {
	b := encode(t, fileOf(1, 512, 3, 1, 2, 3))
	for _, r := range []io.Reader{
		iotest.OneByteReader(bytes.NewReader(b)),
		iotest.DataErrReader(bytes.NewReader(b)),
		iotest.HalfReader(bytes.NewReader(b)),
	} {
		if _, _, err := ltx.VerifyFile(r); err != nil {
			t.Error(err)
		}
	}
}
