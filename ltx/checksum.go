package ltx

import (
	"encoding/binary"
	"math/bits"
)

// ChecksumPage returns the checksum of one page: of its number, big-endian,
// and its content. The checksum of a database is the XOR of those of its
// pages, the lock page left out, with ChecksumFlag set.
func ChecksumPage(pgno uint32, data []byte) Checksum {
	return finish(crcUpdate(pgnoState(pgno), data))
}

// finish turns a state into the checksum it stands for.
func finish(state uint64) Checksum { return ChecksumFlag | Checksum(^state) }

// pgnoState is the state after a page number.
func pgnoState(pgno uint32) uint64 {
	state := crcInit ^ uint64(bits.ReverseBytes32(pgno))
	return state>>32 ^ fold(state<<32)
}

// pageShift appends the zero bytes of a whole page to a state: it multiplies
// by x^(8*size), which is x^(64*2^k). The value is k.
type pageShift uint

func newPageShift(pageSize uint32) pageShift {
	return pageShift(bits.TrailingZeros32(pageSize / 8))
}

// apply uses that y^64 = y^4+y^3+y+1 holds for every y = x^(64*2^k).
func (k pageShift) apply(state uint64) uint64 {
	y := k - 6 // the smallest page has 2^6 words
	once := y.small(state)
	thrice := y.small(y.small(once))
	return state ^ once ^ thrice ^ y.small(thrice)
}

// small multiplies by x^(64*2^k) for a k up to 7.
func (k pageShift) small(w uint64) uint64 {
	if k > 3 {
		for range 1 << (k - 3) {
			w = pageShift(3).small(w)
		}
		return w
	}
	a, b, c := uint(1)<<k, uint(3)<<k, uint(4)<<k
	return w ^ w>>a ^ w>>b ^ w>>c ^ fold(w<<(64-a)^w<<(64-b)^w<<(64-c))
}

// page is the checksum of a page whose bare remainder is raw.
func (k pageShift) page(pgno uint32, raw uint64) Checksum {
	return finish(k.apply(pgnoState(pgno)) ^ raw)
}

// fileSum is the running checksum of a file.
type fileSum struct {
	state uint64
	shift pageShift
}

func newFileSum(pageSize uint32) fileSum {
	return fileSum{state: crcInit, shift: newPageShift(pageSize)}
}

func (s *fileSum) write(b []byte) { s.state = crcUpdate(s.state, b) }

// page appends a page whose bare remainder is raw.
func (s *fileSum) page(raw uint64) { s.state = s.shift.apply(s.state) ^ raw }

// frameHeader appends the header of a page frame and the size after it.
func (s *fileSum) frameHeader(b []byte) {
	s.state = shift64(s.state ^ binary.LittleEndian.Uint64(b))
	state := s.state ^ uint64(binary.LittleEndian.Uint16(b[8:]))
	s.state = state>>16 ^ fold(state<<48)
}

func (s *fileSum) sum() Checksum { return finish(s.state) }
