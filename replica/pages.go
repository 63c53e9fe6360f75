package replica

import (
	"io"
	"iter"
	"math/bits"
)

// runSize is how many bytes of neighboring pages are written at once.
const runSize = 512 << 10

// pageSet is a set of page numbers, one bit each.
type pageSet struct {
	words []uint64
	n     uint32
}

func newPageSet(pages uint32) *pageSet { return &pageSet{words: make([]uint64, pages/64+1)} }

// add reports whether pgno was not in the set yet.
func (s *pageSet) add(pgno uint32) bool {
	word, bit := &s.words[pgno/64], uint64(1)<<(pgno%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	s.n++
	return true
}

// grow makes room for pages up to pgno.
func (s *pageSet) grow(pgno uint32) {
	if n := int(pgno/64) + 1 - len(s.words); n > 0 {
		s.words = append(s.words, make([]uint64, n)...)
	}
}

// all yields the page numbers in the set, ascending.
func (s *pageSet) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for i, word := range s.words {
			for ; word != 0; word &= word - 1 {
				if !yield(uint32(i*64 + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}

// firstMissing returns the lowest page number that is not in the set, 0 and
// skip left aside.
func (s *pageSet) firstMissing(skip uint32) uint32 {
	for i, word := range s.words {
		absent := ^word
		if i == 0 {
			absent &^= 1
		}
		if i == int(skip/64) {
			absent &^= 1 << (skip % 64)
		}
		if absent != 0 {
			return uint32(i*64 + bits.TrailingZeros64(absent))
		}
	}
	return uint32(len(s.words) * 64)
}

// run gathers neighboring pages and writes them with one call.
type run struct {
	out      io.WriterAt
	pageSize int
	first    uint32 // page number of the first page gathered
	buf      []byte
}

func newRun(out io.WriterAt, pageSize uint32) *run {
	return &run{out: out, pageSize: int(pageSize), buf: make([]byte, 0, runSize)}
}

// slot returns where the content of a page is to be put before the next call.
func (r *run) slot(pgno uint32) ([]byte, error) {
	if n := len(r.buf); n > 0 && (pgno != r.first+uint32(n/r.pageSize) || n+r.pageSize > cap(r.buf)) {
		if err := r.flush(); err != nil {
			return nil, err
		}
	}
	n := len(r.buf)
	if n == 0 {
		r.first = pgno
	}
	r.buf = r.buf[:n+r.pageSize]
	return r.buf[n:], nil
}

// flush writes what was gathered.
func (r *run) flush() error {
	if len(r.buf) == 0 {
		return nil
	}
	_, err := r.out.WriteAt(r.buf, int64(r.first-1)*int64(r.pageSize))
	r.buf = r.buf[:0]
	return err
}
