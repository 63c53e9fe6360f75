package ltx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"math/bits"
)

// indexTailSize is the size of what follows the index records' end marker:
// the size of the index and the trailer.
const indexTailSize = 8 + TrailerSize

// Entry says where the frame of one page is in a file.
type Entry struct {
	Pgno         uint32
	Offset, Size int64
}

// Index is the index of a file, in its raw form.
type Index struct {
	raw []byte // records and end marker
	end int64  // offset of the end of the last frame
}

// ReadIndex reads the index of a file of the given size from its end. It
// proves nothing of the pages: what the index names is to be verified when it
// is read. Errors wrap ErrCorrupt, those of r excepted.
func ReadIndex(r io.ReaderAt, size int64) (Index, error) {
	const least = HeaderSize + PageHeaderSize + 1 + indexTailSize
	if size < least {
		return Index{}, corrupt("file has %d bytes, the least is %d", size, least)
	}
	var tail [indexTailSize]byte
	if err := readAt(r, tail[:], size-indexTailSize); err != nil {
		return Index{}, fmt.Errorf("read index size: %w", err)
	}
	if _, err := ReadTrailer(tail[:]); err != nil {
		return Index{}, err
	}
	length := binary.BigEndian.Uint64(tail[:])
	if length < 1 || length > uint64(size-least+1) {
		return Index{}, corrupt("index of %d bytes in a file of %d", length, size)
	}
	b := make([]byte, PageHeaderSize+int(length))
	end := size - indexTailSize - int64(len(b))
	if err := readAt(r, b, end); err != nil {
		return Index{}, fmt.Errorf("read index: %w", err)
	}
	if [PageHeaderSize]byte(b) != [PageHeaderSize]byte{} {
		return Index{}, corrupt("no end of pages before the index")
	}
	return Index{raw: b[PageHeaderSize:], end: end}, nil
}

// readAt fills b. The end of the input is ErrCorrupt.
func readAt(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return corrupt("file ends early")
	}
	return err
}

// Entries yields where each page is, ascending. It checks that the frames
// follow each other from the header to the index; the error that ends it wraps
// ErrCorrupt.
func (x Index) Entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		scan := newIndexScan()
		for raw := x.raw; ; {
			e, n, err := scan.next(raw)
			if err == nil && e.Pgno == 0 && (n != len(raw) || scan.offset != x.end) {
				err = corrupt("index does not cover the pages up to %d", x.end)
			}
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if e.Pgno == 0 || !yield(e, nil) {
				return
			}
			raw = raw[n:]
		}
	}
}

// indexScan walks through the records of an index.
type indexScan struct {
	prev   uint32
	offset int64 // where the next frame must begin
	frames frameHash
}

func newIndexScan() indexScan { return indexScan{offset: HeaderSize} }

// next returns the record at the start of b and its length; the end marker is
// an entry of page 0.
func (s *indexScan) next(b []byte) (Entry, int, error) {
	pgno, n, err := uvarint(b, math.MaxUint32)
	if err != nil || pgno == 0 {
		return Entry{}, n, err
	}
	if uint32(pgno) <= s.prev {
		return Entry{}, 0, corrupt("index names page %d after page %d", pgno, s.prev)
	}
	offset, m, err := uvarint(b[n:], math.MaxInt64)
	if err != nil {
		return Entry{}, 0, err
	}
	n += m
	size, m, err := uvarint(b[n:], math.MaxInt32)
	if err != nil {
		return Entry{}, 0, err
	}
	if int64(offset) != s.offset || size <= PageHeaderSize || s.offset > math.MaxInt64-int64(size) {
		return Entry{}, 0, corrupt("index places page %d at %d+%d, want %d", pgno, offset, size, s.offset)
	}
	e := Entry{Pgno: uint32(pgno), Offset: s.offset, Size: int64(size)}
	s.prev = e.Pgno
	s.offset += e.Size
	s.frames = s.frames.add(e.Pgno, int(e.Size))
	return e, n + m, nil
}

// uvarint reads a number in its shortest form.
func uvarint(b []byte, most uint64) (uint64, int, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, 0, corrupt("index ends within a record")
	}
	if v > most || n > 1 && b[n-1] == 0 {
		return 0, 0, corrupt("index has an invalid number")
	}
	return v, n, nil
}

// frameHash is a running hash of the frames of a file, by which the index is
// compared with them.
type frameHash uint64

func (h frameHash) add(pgno uint32, size int) frameHash {
	const odd = 0x9e3779b97f4a7c15
	v := (uint64(h) ^ (uint64(pgno)<<32 | uint64(uint32(size)))) * odd
	return frameHash(bits.RotateLeft64(v, 29) + odd)
}
