package ltx

import (
	"encoding/binary"
	"math/bits"

	"github.com/pierrec/lz4/v4"
)

// The old form of a page is an LZ4 frame, in which the page is one block or a
// few. Nothing says how long the frame is, it has to be walked through.
const (
	lz4Magic           = 0x184D2204
	lz4VersionMask     = 0xc0
	lz4Version         = 0x40
	lz4HasDict         = 1 << 0
	lz4HasContentSum   = 1 << 2
	lz4HasContentSize  = 1 << 3
	lz4HasBlockSum     = 1 << 4
	lz4Stored          = 1 << 31
	lz4LeastHeaderSize = 7
)

// peeker looks ahead in a stream; the slice is valid until the next call.
type peeker func(n int) ([]byte, error)

// peekBytes looks ahead in a slice.
func peekBytes(b []byte) peeker {
	return func(n int) ([]byte, error) {
		if n > len(b) {
			return nil, corrupt("frame ends early")
		}
		return b[:n], nil
	}
}

// oldHeaderSize returns the size of the header of an LZ4 frame, of which b is
// the least part.
func oldHeaderSize(b []byte) (int, error) {
	flags := b[4]
	if binary.LittleEndian.Uint32(b) != lz4Magic || flags&lz4VersionMask != lz4Version || flags&lz4HasDict != 0 {
		return 0, corrupt("no LZ4 frame")
	}
	if flags&lz4HasContentSize != 0 {
		return lz4LeastHeaderSize + 8, nil
	}
	return lz4LeastHeaderSize, nil
}

// oldFrameSize returns the size of the LZ4 frame that peek shows.
func oldFrameSize(peek peeker, pageSize uint32) (int, error) {
	b, err := peek(lz4LeastHeaderSize)
	if err != nil {
		return 0, err
	}
	flags := b[4]
	size, err := oldHeaderSize(b)
	if err != nil {
		return 0, err
	}
	for {
		b, err := peek(size + 4)
		if err != nil {
			return 0, err
		}
		block := binary.LittleEndian.Uint32(b[size:])
		size += 4
		if block == 0 {
			break
		}
		block &^= lz4Stored
		if block > uint32(maxFrame(pageSize)) || size+int(block) > maxFrame(pageSize) {
			return 0, corrupt("LZ4 frame is larger than a page can be")
		}
		size += int(block)
		if flags&lz4HasBlockSum != 0 {
			size += 4
		}
	}
	if flags&lz4HasContentSum != 0 {
		size += 4
	}
	_, err = peek(size)
	return size, err
}

// unpackOld decompresses an LZ4 frame, whose size is right, to page.
func unpackOld(frame, page []byte) error {
	flags := frame[4]
	header, err := oldHeaderSize(frame)
	if err != nil {
		return err
	}
	if byte(xxh32(frame[4:header-1])>>8) != frame[header-1] {
		return corrupt("checksum of an LZ4 frame header")
	}
	if header > lz4LeastHeaderSize && binary.LittleEndian.Uint64(frame[6:]) != uint64(len(page)) {
		return corrupt("LZ4 frame does not have the size of a page")
	}
	var n int
	b := frame[header:]
	for {
		block := binary.LittleEndian.Uint32(b)
		b = b[4:]
		if block == 0 {
			break
		}
		size := int(block &^ lz4Stored)
		unpack := unpackBlock
		if block&lz4Stored != 0 {
			unpack = copyBlock
		}
		m, err := unpack(b[:size], page, n)
		if err != nil {
			return err
		}
		if flags&lz4HasBlockSum != 0 {
			if xxh32(b[:size]) != binary.LittleEndian.Uint32(b[size:]) {
				return corrupt("checksum of an LZ4 block")
			}
			size += 4
		}
		n += m
		b = b[size:]
	}
	if n != len(page) {
		return corrupt("LZ4 frame has %d bytes, want a page of %d", n, len(page))
	}
	if flags&lz4HasContentSum != 0 && xxh32(page) != binary.LittleEndian.Uint32(b) {
		return corrupt("checksum of an LZ4 frame")
	}
	return nil
}

// unpackBlock decompresses a block behind the n bytes that page already has,
// to which it may refer.
func unpackBlock(block, page []byte, n int) (int, error) {
	m, err := lz4.UncompressBlockWithDict(block, page[n:], page[:n])
	if err != nil {
		return 0, corrupt("decompress LZ4 frame: %w", err)
	}
	return m, nil
}

// copyBlock copies a stored block behind the n bytes that page already has.
func copyBlock(block, page []byte, n int) (int, error) {
	if len(block) > len(page)-n {
		return 0, corrupt("LZ4 frame is larger than a page")
	}
	return copy(page[n:], block), nil
}

// xxh32 is the XXH32 hash of b with seed 0, the checksum of LZ4 frames.
func xxh32(b []byte) uint32 {
	const p1, p2, p3, p4, p5 uint32 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
	size, hash := uint32(len(b)), p5
	if len(b) >= 16 {
		lanes := [4]uint32{p2, p2, 0, 0}
		lanes[0] += p1
		lanes[3] -= p1
		for ; len(b) >= 16; b = b[16:] {
			for i := range lanes {
				lanes[i] = bits.RotateLeft32(lanes[i]+binary.LittleEndian.Uint32(b[i*4:])*p2, 13) * p1
			}
		}
		hash = bits.RotateLeft32(lanes[0], 1) + bits.RotateLeft32(lanes[1], 7) +
			bits.RotateLeft32(lanes[2], 12) + bits.RotateLeft32(lanes[3], 18)
	}
	hash += size
	for ; len(b) >= 4; b = b[4:] {
		hash = bits.RotateLeft32(hash+binary.LittleEndian.Uint32(b)*p3, 17) * p4
	}
	for _, c := range b {
		hash = bits.RotateLeft32(hash+uint32(c)*p5, 11) * p1
	}
	hash = (hash ^ hash>>15) * p2
	hash = (hash ^ hash>>13) * p3
	return hash ^ hash>>16
}
