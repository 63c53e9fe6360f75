package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Mark is a place in one generation of a log: after a commit frame, or before
// the first frame.
type Mark struct {
	Salt1, Salt2 uint32
	Frames       uint32    // frames before it
	Sum          [2]uint32 // running checksum there
}

// Verdict says what became of a mark.
type Verdict int

const (
	// Continues: the log up to the mark is what it was; go on from there.
	Continues Verdict = iota
	// Restarted: SQLite started the log over, exactly once; go on from the
	// start of the new generation if everything before it had been read.
	Restarted
	// Lost: anything else; the log does not tell what happened since.
	Lost
)

// String returns the verdict as a word.
func (v Verdict) String() string {
	switch v {
	case Continues:
		return "continues"
	case Restarted:
		return "restarted"
	default:
		return "lost"
	}
}

// Resume compares a mark with the log. It reads the header and the one frame
// before the mark: the running checksum there stands for all earlier frames.
// A log that is empty or not valid is Lost; errors are those of the reader.
func Resume(r io.ReaderAt, m Mark) (Verdict, error) {
	h, err := ReadHeader(r)
	switch {
	case errors.Is(err, ErrEmpty), errors.Is(err, ErrInvalid):
		return Lost, nil
	case err != nil:
		return Lost, fmt.Errorf("resume at frame %d: %w", m.Frames, err)
	case h.Salt1 == m.Salt1+1:
		return Restarted, nil
	case h.Salt1 != m.Salt1 || h.Salt2 != m.Salt2:
		return Lost, nil
	}
	sum, err := h.sumAfter(r, m.Frames)
	switch {
	case errors.Is(err, io.EOF), err == nil && sum != m.Sum:
		return Lost, nil
	case err != nil:
		return Lost, fmt.Errorf("resume at frame %d: %w", m.Frames, err)
	}
	return Continues, nil
}

// sumAfter returns the running checksum that the given number of frames ends
// in, as the log records it, or io.EOF when the log is shorter or the frame is
// of another generation.
func (h Header) sumAfter(r io.ReaderAt, frames uint32) ([2]uint32, error) {
	if frames == 0 {
		return h.Sum, nil
	}
	var b [frameHeaderSize]byte
	if n, err := r.ReadAt(b[:], FrameOffset(frames, h.PageSize)-frameHeaderSize); n < len(b) {
		if err == nil {
			err = io.EOF
		}
		return [2]uint32{}, err
	}
	f := parseFrame(b[:])
	if f.salt1 != h.Salt1 || f.salt2 != h.Salt2 {
		return [2]uint32{}, io.EOF
	}
	return f.sum, nil
}

// frame is a parsed frame header.
type frame struct {
	pgno, commit, salt1, salt2 uint32
	sum                        [2]uint32
}

func parseFrame(b []byte) frame {
	_ = b[frameHeaderSize-1]
	return frame{
		pgno:   binary.BigEndian.Uint32(b[0:]),
		commit: binary.BigEndian.Uint32(b[4:]),
		salt1:  binary.BigEndian.Uint32(b[8:]),
		salt2:  binary.BigEndian.Uint32(b[12:]),
		sum:    [2]uint32{binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint32(b[20:])},
	}
}
