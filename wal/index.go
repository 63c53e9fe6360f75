package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrBusy is wrapped when the wal-index header was caught while being written;
// read it again.
var ErrBusy = errors.New("wal-index header is being written")

const (
	indexCopySize   = 48 // WalIndexHdr, which is there twice
	indexHeaderSize = 2*indexCopySize + 40
)

// IndexHeader is the head of the wal-index, the shared memory file beside the
// log. After a checkpoint that let the log start over it is ahead of the log:
// it has the salts of the next generation, and MaxFrame 0, before the header
// of the log does.
type IndexHeader struct {
	IndexState
	Backfilled        uint32    // frames copied into the database file
	BackfillAttempted uint32    // frames that may have been copied
	ReadMarks         [5]uint32 // frames that readers may stand at
}

// IndexState is the part of the wal-index that each commit replaces.
type IndexState struct {
	Initialized       bool // false: SQLite rebuilds it at the next use
	BigEndianChecksum bool
	PageSize          uint32    // bytes
	Change            uint32    // counts the commits
	MaxFrame          uint32    // last frame of the last commit
	Pages             uint32    // size of the database
	FrameSum          [2]uint32 // running checksum at MaxFrame
	Salt1, Salt2      uint32
}

// ReadIndexHeader reads the head of a wal-index. It wraps ErrEmpty when there
// is none, ErrBusy when it was caught half written and ErrInvalid when it is
// of an unknown version. One that is not initialized is no error.
func ReadIndexHeader(r io.ReaderAt) (IndexHeader, error) {
	var b [indexHeaderSize]byte
	if n, err := r.ReadAt(b[:], 0); n < len(b) {
		if err == nil || errors.Is(err, io.EOF) {
			return IndexHeader{}, fmt.Errorf("read wal-index header: %w: %d bytes", ErrEmpty, n)
		}
		return IndexHeader{}, fmt.Errorf("read wal-index header: %w", err)
	}
	state, err := parseIndexState(b[:2*indexCopySize])
	if err != nil {
		return IndexHeader{}, fmt.Errorf("read wal-index header: %w", err)
	}
	h := IndexHeader{
		IndexState:        state,
		Backfilled:        binary.NativeEndian.Uint32(b[96:]),
		BackfillAttempted: binary.NativeEndian.Uint32(b[128:]),
	}
	for i := range h.ReadMarks {
		h.ReadMarks[i] = binary.NativeEndian.Uint32(b[100+4*i:])
	}
	return h, nil
}

func parseIndexState(b []byte) (IndexState, error) {
	if !bytes.Equal(b[:indexCopySize], b[indexCopySize:]) {
		return IndexState{}, fmt.Errorf("%w: its copies differ", ErrBusy)
	}
	word := func(off int) uint32 { return binary.NativeEndian.Uint32(b[off:]) }
	if nativeSum(b[:40]) != [2]uint32{word(40), word(44)} {
		return IndexState{}, fmt.Errorf("%w: wrong checksum", ErrBusy)
	}
	if b[12] == 0 {
		return IndexState{}, nil
	}
	if v := word(0); v != version {
		return IndexState{}, fmt.Errorf("%w: wal-index version %d, want %d", ErrInvalid, v, version)
	}
	size := uint32(binary.NativeEndian.Uint16(b[14:]))
	return IndexState{
		Initialized:       true,
		BigEndianChecksum: b[13] != 0,
		PageSize:          size&0xfe00 | size&1<<16, // 65536 is kept as 1
		Change:            word(8),
		MaxFrame:          word(16),
		Pages:             word(20),
		FrameSum:          [2]uint32{word(24), word(28)},
		Salt1:             binary.BigEndian.Uint32(b[32:]),
		Salt2:             binary.BigEndian.Uint32(b[36:]),
	}, nil
}

// nativeSum is the checksum of the wal-index, always in the byte order of the
// machine.
func nativeSum(b []byte) [2]uint32 {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return sumLittle([2]uint32{}, b)
	}
	return sumBig([2]uint32{}, b)
}
