package ltx

import "encoding/binary"

// block is 64 words of a message, earliest first: the coefficients of a
// polynomial in a = x^64. For it a^64 = a^4+a^3+a+1, so that stepping over a
// block of the message moves and XORs whole words.
type block [64]uint64

const blockSize = 512

// crcBlocks appends b, one or more whole blocks, to state.
func crcBlocks(state uint64, b []byte) uint64 {
	var s block
	s[0] = state
	for i := range s {
		s[i] ^= binary.LittleEndian.Uint64(b[i*8:])
	}
	for b = b[blockSize:]; len(b) > 0; b = b[blockSize:] {
		s.step(b)
	}
	return s.reduce()
}

// step multiplies s by a^64 and adds the block in b.
func (s *block) step(b []byte) {
	// The first words reach as far as the last ones, which are to be stepped
	// over as well.
	s[60] ^= s[0]
	s[61] ^= s[0] ^ s[1]
	s[62] ^= s[1] ^ s[2]
	s[63] ^= s[0] ^ s[2] ^ s[3]
	for i := 0; i < 60; i += 12 {
		stepWords((*[16]uint64)(s[i:]), (*[96]byte)(b[i*8:]))
	}
	c := (*[32]byte)(b[480:])
	s[60] ^= s[61] ^ s[63] ^ binary.LittleEndian.Uint64(c[0:])
	s[61] ^= s[62] ^ binary.LittleEndian.Uint64(c[8:])
	s[62] ^= s[63] ^ binary.LittleEndian.Uint64(c[16:])
	s[63] ^= binary.LittleEndian.Uint64(c[24:])
}

// stepWords does the first 12 words of s. Each gets, besides its own, the
// words 1, 3 and 4 behind it.
func stepWords(s *[16]uint64, c *[96]byte) {
	t0, t1, t2 := s[0]^s[1], s[1]^s[2], s[2]^s[3]
	t3 := s[3] ^ s[4]
	s[0] = t0 ^ t3 ^ binary.LittleEndian.Uint64(c[0:])
	t0 = s[4] ^ s[5]
	s[1] = t1 ^ t0 ^ binary.LittleEndian.Uint64(c[8:])
	t1 = s[5] ^ s[6]
	s[2] = t2 ^ t1 ^ binary.LittleEndian.Uint64(c[16:])
	t2 = s[6] ^ s[7]
	s[3] = t3 ^ t2 ^ binary.LittleEndian.Uint64(c[24:])
	t3 = s[7] ^ s[8]
	s[4] = t0 ^ t3 ^ binary.LittleEndian.Uint64(c[32:])
	t0 = s[8] ^ s[9]
	s[5] = t1 ^ t0 ^ binary.LittleEndian.Uint64(c[40:])
	t1 = s[9] ^ s[10]
	s[6] = t2 ^ t1 ^ binary.LittleEndian.Uint64(c[48:])
	t2 = s[10] ^ s[11]
	s[7] = t3 ^ t2 ^ binary.LittleEndian.Uint64(c[56:])
	t3 = s[11] ^ s[12]
	s[8] = t0 ^ t3 ^ binary.LittleEndian.Uint64(c[64:])
	t0 = s[12] ^ s[13]
	s[9] = t1 ^ t0 ^ binary.LittleEndian.Uint64(c[72:])
	t1 = s[13] ^ s[14]
	s[10] = t2 ^ t1 ^ binary.LittleEndian.Uint64(c[80:])
	t2 = s[14] ^ s[15]
	s[11] = t3 ^ t2 ^ binary.LittleEndian.Uint64(c[88:])
}

// reduce returns the remainder of s. Four lanes of a word step over each other
// by a^4 = x^16+x^12+x^4+1; what a lane shifts out belongs, a word further up,
// to the lane before it.
func (s *block) reduce() uint64 {
	a, b, c, d := s[0], s[1], s[2], s[3]
	for i := 4; i < len(s); i += 4 {
		next := (*[4]uint64)(s[i:])
		over := fold(a<<60 ^ a<<52 ^ a<<48)
		a = a ^ a>>4 ^ a>>12 ^ a>>16 ^ b<<60 ^ b<<52 ^ b<<48 ^ next[0]
		b = b ^ b>>4 ^ b>>12 ^ b>>16 ^ c<<60 ^ c<<52 ^ c<<48 ^ next[1]
		c = c ^ c>>4 ^ c>>12 ^ c>>16 ^ d<<60 ^ d<<52 ^ d<<48 ^ next[2]
		d = d ^ d>>4 ^ d>>12 ^ d>>16 ^ next[3]
		a ^= over
	}
	return shift64(shift64(shift64(shift64(a)^b)^c) ^ d)
}
