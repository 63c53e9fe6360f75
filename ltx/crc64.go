package ltx

import "encoding/binary"

// CRC-64/ISO as hash/crc64 computes it: reflected, so that the top bit of a
// word is the coefficient of x^0 and a shift to the right multiplies by x.
//
// Its polynomial is x^64+x^4+x^3+x+1. So multiplying by x^64 is multiplying by
// x^4+x^3+x+1 = (x+1)(x^3+1), and, as squaring is linear, multiplying by
// x^(64*2^k) is multiplying by x^(4*2^k)+x^(3*2^k)+x^(2^k)+1.
//
// The functions here work on the bare remainder, without the inversion of the
// bits before and after; because of that they are linear, and one pass over a
// page serves its own checksum and that of the file around it.

// crcInit is the state before the first byte, and what is XORed to the state
// for the final checksum.
const crcInit = ^uint64(0)

// fold multiplies by x^64 what has at most 60 coefficients.
func fold(over uint64) uint64 {
	over ^= over >> 1
	return over ^ over>>3
}

// shift64 multiplies by x^64.
func shift64(w uint64) uint64 {
	return w ^ w>>1 ^ w>>3 ^ w>>4 ^ fold(w<<63^w<<61^w<<60)
}

// shift512 multiplies by x^512.
func shift512(w uint64) uint64 {
	return w ^ w>>8 ^ w>>24 ^ w>>32 ^ fold(w<<56^w<<40^w<<32)
}

// crcUpdate appends b to state.
func crcUpdate(state uint64, b []byte) uint64 {
	if len(b) >= 128 {
		n := len(b) &^ 63
		state, b = crcBlocks(state, b[:n]), b[n:]
	}
	for len(b) >= 8 {
		state = shift64(state ^ binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	for _, c := range b {
		state ^= uint64(c)
		state = state>>8 ^ fold(state<<56)
	}
	return state
}

// crcBlocks appends a multiple of 64 bytes, at least 64, to state: eight lanes
// of a word each, which step over each other by x^512.
func crcBlocks(state uint64, b []byte) uint64 {
	var lanes [8]uint64
	lanes[0] = state
	for i := range lanes {
		lanes[i] ^= binary.LittleEndian.Uint64(b[i*8:])
	}
	for b = b[64:]; len(b) >= 64; b = b[64:] {
		for i := range lanes {
			lanes[i] = shift512(lanes[i]) ^ binary.LittleEndian.Uint64(b[i*8:])
		}
	}
	state = 0
	for _, lane := range lanes {
		state = shift64(state ^ lane)
	}
	return state
}
