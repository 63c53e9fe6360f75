package wal_test

import (
	"encoding/binary"
	"slices"

	"github.com/tidemark-io/tidemark/wal"
)

// This file writes down the format a second time, as plainly as it can be
// said, to judge the package by.

const (
	headerSize      = 32
	frameHeaderSize = 24
)

func order(bigEndian bool) binary.ByteOrder {
	if bigEndian {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func plainSum(o binary.ByteOrder, s [2]uint32, b []byte) [2]uint32 {
	for ; len(b) >= 8; b = b[8:] {
		s[0] += o.Uint32(b) + s[1]
		s[1] += o.Uint32(b[4:]) + s[0]
	}
	return s
}

func putSum(b []byte, s [2]uint32) {
	binary.BigEndian.PutUint32(b, s[0])
	binary.BigEndian.PutUint32(b[4:], s[1])
}

// seal makes any bytes a log: it sets magic, version and page size, gives
// every frame the salts of the header and computes all checksums.
func seal(log []byte, pageSize int, bigEndian bool) []byte {
	if len(log) < headerSize {
		return log
	}
	log = slices.Clone(log)
	binary.BigEndian.PutUint32(log, 0x377f0682)
	if bigEndian {
		log[3]++
	}
	binary.BigEndian.PutUint32(log[4:], 3007000)
	binary.BigEndian.PutUint32(log[8:], uint32(pageSize))
	o := order(bigEndian)
	sum := plainSum(o, [2]uint32{}, log[:24])
	putSum(log[24:], sum)
	for b := log[headerSize:]; len(b) >= frameHeaderSize+pageSize; b = b[frameHeaderSize+pageSize:] {
		copy(b[8:16], log[16:24])
		sum = plainSum(o, sum, b[:8])
		sum = plainSum(o, sum, b[frameHeaderSize:frameHeaderSize+pageSize])
		putSum(b[16:], sum)
	}
	return log
}

// plainCommitted is wal.Committed without limits, from the start of the log.
func plainCommitted(log []byte, h wal.Header) wal.Segment {
	out := wal.Segment{From: h.Start(), To: h.Start()}
	o, size := order(h.BigEndian), int(h.PageSize)
	at, now := h.Start(), map[uint32]uint32{}
	for b := log[headerSize:]; len(b) >= frameHeaderSize+size; b = b[frameHeaderSize+size:] {
		word := func(i int) uint32 { return binary.BigEndian.Uint32(b[4*i:]) }
		at.Sum = plainSum(o, at.Sum, b[:8])
		at.Sum = plainSum(o, at.Sum, b[frameHeaderSize:frameHeaderSize+size])
		if word(0) == 0 || word(2) != h.Salt1 || word(3) != h.Salt2 || at.Sum != [2]uint32{word(4), word(5)} {
			break
		}
		at.Frames++
		now[word(0)] = at.Frames
		if word(1) == 0 {
			continue
		}
		out.To, out.Commit, out.Pages = at, word(1), nil
		out.Commits++
		for pgno, frame := range now {
			if pgno <= out.Commit {
				out.Pages = append(out.Pages, wal.PageRef{Pgno: pgno, Frame: frame})
			}
		}
	}
	slices.SortFunc(out.Pages, func(a, b wal.PageRef) int { return int(int64(a.Pgno) - int64(b.Pgno)) })
	return out
}

// borders returns the marks after each commit of a log, the start first.
func borders(log []byte, h wal.Header) []wal.Mark {
	marks := []wal.Mark{h.Start()}
	for i := range plainCommitted(log, h).To.Frames {
		b := log[wal.FrameOffset(i+1, h.PageSize)-frameHeaderSize:]
		word := func(i int) uint32 { return binary.BigEndian.Uint32(b[4*i:]) }
		if word(1) != 0 {
			marks = append(marks, wal.Mark{Salt1: h.Salt1, Salt2: h.Salt2, Frames: i + 1, Sum: [2]uint32{word(4), word(5)}})
		}
	}
	return marks
}
