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

// crcUpdate appends b to state.
func crcUpdate(state uint64, b []byte) uint64 {
	if len(b) >= blockSize {
		n := len(b) &^ (blockSize - 1)
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
