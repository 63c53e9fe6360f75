package ltx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// load reads the header of a page sums file and checks that the sums add up
// to the checksum of their position: after a power cut they may not.
func (s *PageSums) load() error {
	var b [48]byte
	n, err := s.f.ReadAt(b[:], 0)
	if err != nil && !isEOF(err) {
		return err
	}
	if n == 0 {
		return s.Reset()
	}
	if n < len(b) || string(b[:8]) != sumsMagic {
		return fmt.Errorf("%w: not a page sums file", ErrCorrupt)
	}
	s.head = sumsHeader{
		pageSize: binary.LittleEndian.Uint32(b[12:]),
		pages:    binary.LittleEndian.Uint32(b[16:]),
		pos: Pos{
			TXID:              TXID(binary.LittleEndian.Uint64(b[24:])),
			PostApplyChecksum: Checksum(binary.LittleEndian.Uint64(b[32:])),
		},
	}
	s.interrupted = binary.LittleEndian.Uint32(b[8:]) != sumsClean
	if s.interrupted || s.head.pos.IsZero() {
		return nil
	}
	return s.Verify()
}

// Verify wraps ErrCorrupt unless the sums add up to the checksum of their
// position.
func (s *PageSums) Verify() error {
	if err := s.flush(); err != nil {
		return err
	}
	info, err := s.f.Stat()
	if err != nil {
		return err
	}
	if info.Size() != sumsStart+int64(s.head.pages)*ChecksumSize || !ValidPageSize(s.head.pageSize) {
		return fmt.Errorf("%w: page sums do not fit their header", ErrCorrupt)
	}
	total, err := s.Tail(0)
	if err != nil {
		return err
	}
	if total|ChecksumFlag != s.head.pos.PostApplyChecksum {
		return fmt.Errorf("%w: page sums do not add up", ErrCorrupt)
	}
	return nil
}

func (s *PageSums) writeHead(state uint32) error {
	var b [48]byte
	copy(b[:], sumsMagic)
	binary.LittleEndian.PutUint32(b[8:], state)
	binary.LittleEndian.PutUint32(b[12:], s.head.pageSize)
	binary.LittleEndian.PutUint32(b[16:], s.head.pages)
	binary.LittleEndian.PutUint64(b[24:], uint64(s.head.pos.TXID))
	binary.LittleEndian.PutUint64(b[32:], uint64(s.head.pos.PostApplyChecksum))
	if _, err := s.f.WriteAt(b[:], 0); err != nil {
		return fmt.Errorf("write page sums header: %w", err)
	}
	return nil
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
