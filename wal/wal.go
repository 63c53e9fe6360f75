// Package wal reads SQLite's write-ahead log (SQLite file format, section 4)
// and the head of the wal-index beside it. It is the first step of capture:
// it says which pages whole commits changed and where the newest copy of each
// stands. It works on any io.ReaderAt, takes no locks and never writes; it
// must not know what a database, an LTX file or a bucket is.
package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

var (
	// ErrEmpty is wrapped when there is no log: the file is shorter than a
	// header or its header is all zero.
	ErrEmpty = errors.New("no write-ahead log")
	// ErrInvalid is wrapped when the bytes are not what SQLite writes.
	ErrInvalid = errors.New("invalid write-ahead log")
)

const (
	headerSize      = 32
	frameHeaderSize = 24
	magicLittle     = 0x377f0682
	magicBig        = 0x377f0683
	version         = 3007000
)

// Header is the head of a log. SQLite writes a new one, with new salts, each
// time it starts the log over.
type Header struct {
	BigEndian     bool   // byte order of the checksummed words
	PageSize      uint32 // bytes, 512 to 65536
	CheckpointSeq uint32
	Salt1, Salt2  uint32
	Sum           [2]uint32 // checksum of the header, where that of the frames starts
}

// ReadHeader reads and verifies the header of a log. It wraps ErrEmpty when
// there is none and ErrInvalid when it is not one of SQLite's.
func ReadHeader(r io.ReaderAt) (Header, error) {
	var b [headerSize]byte
	if n, err := r.ReadAt(b[:], 0); n < len(b) {
		if err == nil || errors.Is(err, io.EOF) {
			return Header{}, fmt.Errorf("read log header: %w: %d bytes", ErrEmpty, n)
		}
		return Header{}, fmt.Errorf("read log header: %w", err)
	}
	if b == [headerSize]byte{} {
		return Header{}, fmt.Errorf("read log header: %w: all zero", ErrEmpty)
	}
	return parseHeader(b[:])
}

func parseHeader(b []byte) (Header, error) {
	word := func(i int) uint32 { return binary.BigEndian.Uint32(b[4*i:]) }
	if m := word(0); m != magicLittle && m != magicBig {
		return Header{}, fmt.Errorf("read log header: %w: magic %#08x", ErrInvalid, m)
	}
	if v := word(1); v != version {
		return Header{}, fmt.Errorf("read log header: %w: version %d, want %d", ErrInvalid, v, version)
	}
	h := Header{
		BigEndian:     word(0) == magicBig,
		PageSize:      word(2),
		CheckpointSeq: word(3),
		Salt1:         word(4),
		Salt2:         word(5),
		Sum:           [2]uint32{word(6), word(7)},
	}
	if !validPageSize(h.PageSize) {
		return Header{}, fmt.Errorf("read log header: %w: page size %d", ErrInvalid, h.PageSize)
	}
	if h.sum([2]uint32{}, b[:24]) != h.Sum {
		return Header{}, fmt.Errorf("read log header: %w: wrong checksum", ErrInvalid)
	}
	return h, nil
}

// Start returns the mark before the first frame.
func (h Header) Start() Mark {
	return Mark{Salt1: h.Salt1, Salt2: h.Salt2, Sum: h.Sum}
}

func (h Header) frameSize() int { return frameHeaderSize + int(h.PageSize) }

func validPageSize(n uint32) bool {
	return n >= 512 && n <= 65536 && n&(n-1) == 0
}

// FrameOffset returns the offset of the page in a frame; frames count from 1.
func FrameOffset(frame, pageSize uint32) int64 {
	return headerSize + (int64(frame)-1)*(frameHeaderSize+int64(pageSize)) + frameHeaderSize
}
