package wal

import "encoding/binary"

// sum continues SQLite's running checksum over b, whose length is a multiple
// of 8, in the byte order of the log.
func (h Header) sum(s [2]uint32, b []byte) [2]uint32 {
	if h.BigEndian {
		return sumBig(s, b)
	}
	return sumLittle(s, b)
}

// The additions are grouped so that each word waits for one addition of the
// word before it, not for two.

func sumLittle(s [2]uint32, b []byte) [2]uint32 {
	s0, s1 := s[0], s[1]
	for ; len(b) >= 32; b = b[32:] {
		w := (*[32]byte)(b)
		x := binary.LittleEndian.Uint64(w[0:])
		s0 = (s0 + uint32(x)) + s1
		s1 = (s1 + uint32(x>>32)) + s0
		x = binary.LittleEndian.Uint64(w[8:])
		s0 = (s0 + uint32(x)) + s1
		s1 = (s1 + uint32(x>>32)) + s0
		x = binary.LittleEndian.Uint64(w[16:])
		s0 = (s0 + uint32(x)) + s1
		s1 = (s1 + uint32(x>>32)) + s0
		x = binary.LittleEndian.Uint64(w[24:])
		s0 = (s0 + uint32(x)) + s1
		s1 = (s1 + uint32(x>>32)) + s0
	}
	for ; len(b) >= 8; b = b[8:] {
		s0 = (s0 + binary.LittleEndian.Uint32(b)) + s1
		s1 = (s1 + binary.LittleEndian.Uint32(b[4:])) + s0
	}
	return [2]uint32{s0, s1}
}

func sumBig(s [2]uint32, b []byte) [2]uint32 {
	s0, s1 := s[0], s[1]
	for ; len(b) >= 32; b = b[32:] {
		w := (*[32]byte)(b)
		x := binary.BigEndian.Uint64(w[0:])
		s0 = (s0 + uint32(x>>32)) + s1
		s1 = (s1 + uint32(x)) + s0
		x = binary.BigEndian.Uint64(w[8:])
		s0 = (s0 + uint32(x>>32)) + s1
		s1 = (s1 + uint32(x)) + s0
		x = binary.BigEndian.Uint64(w[16:])
		s0 = (s0 + uint32(x>>32)) + s1
		s1 = (s1 + uint32(x)) + s0
		x = binary.BigEndian.Uint64(w[24:])
		s0 = (s0 + uint32(x>>32)) + s1
		s1 = (s1 + uint32(x)) + s0
	}
	for ; len(b) >= 8; b = b[8:] {
		s0 = (s0 + binary.BigEndian.Uint32(b)) + s1
		s1 = (s1 + binary.BigEndian.Uint32(b[4:])) + s0
	}
	return [2]uint32{s0, s1}
}
