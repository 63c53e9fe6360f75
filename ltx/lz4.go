package ltx

import (
	"encoding/binary"
	"math/bits"
)

// Rules of an LZ4 block: a match has at least minMatch bytes, none begins
// within the last matchStart bytes, and the last lastLiterals bytes are
// literals.
const (
	minMatch     = 4
	matchStart   = 12
	lastLiterals = 5
)

const (
	packTableLog = 12
	packTableLen = 1 << packTableLog
	packMostSize = 1 << 16
)

// packer compresses pages, each by itself, as LZ4 blocks. It is made for small
// inputs: its table takes a quarter of the first-level cache, and it is cleared
// only when base wraps, since positions in earlier pages are below base.
type packer struct {
	table [packTableLen]uint16
	base  int
}

// pack compresses src, of at most 64 KiB, to dst, which must have the size
// that lz4.CompressBlockBound returns, and returns the size of the block.
func (p *packer) pack(dst, src []byte) int {
	if p.base+len(src) > packMostSize {
		p.table, p.base = [packTableLen]uint16{}, 0
	}
	const skipLog = 4
	base, last := p.base, len(src)-matchStart
	at, anchor, n := 1, 0, 0 // a reference to an earlier page reads as position 0
	for at < last {
		v := binary.LittleEndian.Uint64(src[at:])
		h0, h1 := packHash(v), packHash(v>>8)
		ref0, ref1 := int(p.table[h0])-base, int(p.table[h1])-base
		p.table[h0], p.table[h1] = uint16(base+at), uint16(base+at+1)
		ref := ref0 &^ (ref0 >> 63)
		if binary.LittleEndian.Uint32(src[ref:]) != uint32(v) {
			ref = ref1 &^ (ref1 >> 63)
			if binary.LittleEndian.Uint32(src[ref:]) != uint32(v>>8) {
				// The longer nothing is found, the larger the steps.
				at += 3 + (at-anchor)>>skipLog
				continue
			}
			at++
		}
		end := extend(src, at+minMatch, ref+minMatch)
		for at > anchor && ref > 0 && src[at-1] == src[ref-1] {
			at--
			ref--
		}
		n += putSequence(dst[n:], src[anchor:], at-anchor, at-ref, end-at-minMatch)
		at, anchor = end, end
		if end < last {
			p.table[packHash(binary.LittleEndian.Uint64(src[end-2:]))] = uint16(base + end - 2)
		}
	}
	p.base += len(src)
	return n + putLiterals(dst[n:], src[anchor:], 0)
}

// packHash hashes the first six bytes of v.
func packHash(v uint64) uint64 { return v << 16 * 227718039650203 >> (64 - packTableLog) }

// extend returns the end of the match of src[at:] with src[ref:], where ref is
// lower.
func extend(src []byte, at, ref int) int {
	a := src[at : len(src)-lastLiterals]
	b := src[ref:][:len(a)]
	for len(a) >= 8 {
		x := binary.LittleEndian.Uint64(a) ^ binary.LittleEndian.Uint64(b)
		if x != 0 {
			return len(src) - lastLiterals - len(a) + bits.TrailingZeros64(x)>>3
		}
		for a, b = a[8:], b[8:]; len(a) >= 32 && len(b) >= 32 && same32(a, b); {
			a, b = a[32:], b[32:]
		}
	}
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	return len(src) - lastLiterals - len(a)
}

// same32 tells whether the first 32 bytes are the same.
func same32(a, b []byte) bool {
	_, _ = a[31], b[31]
	x := binary.LittleEndian.Uint64(a) ^ binary.LittleEndian.Uint64(b)
	x |= binary.LittleEndian.Uint64(a[8:]) ^ binary.LittleEndian.Uint64(b[8:])
	x |= binary.LittleEndian.Uint64(a[16:]) ^ binary.LittleEndian.Uint64(b[16:])
	x |= binary.LittleEndian.Uint64(a[24:]) ^ binary.LittleEndian.Uint64(b[24:])
	return x == 0
}

// putSequence writes the first count bytes of src as literals and a match of
// minMatch+extra bytes at offset.
func putSequence(dst, src []byte, count, offset, extra int) int {
	var n int
	if count < 15 && len(src) >= 16 && len(dst) >= 17 {
		dst[0] = byte(count<<4 | min(extra, 15))
		*(*[16]byte)(dst[1:]) = *(*[16]byte)(src) // what is too much is overwritten
		n = 1 + count
	} else {
		n = putLiterals(dst, src[:count], byte(min(extra, 15)))
	}
	binary.LittleEndian.PutUint16(dst[n:], uint16(offset))
	n += 2
	if extra >= 15 {
		n += putLength(dst[n:], extra-15)
	}
	return n
}

// putLiterals writes a token with match in its lower half, and literals.
func putLiterals(dst, literals []byte, match byte) int {
	n := 1
	if len(literals) < 15 {
		dst[0] = byte(len(literals))<<4 | match
	} else {
		dst[0] = 0xf0 | match
		n += putLength(dst[1:], len(literals)-15)
	}
	return n + copy(dst[n:], literals)
}

// putLength writes what a nibble of 15 leaves of a length.
func putLength(dst []byte, length int) int {
	n := 0
	for ; length >= 255; length -= 255 {
		dst[n] = 255
		n++
	}
	dst[n] = byte(length)
	return n + 1
}
