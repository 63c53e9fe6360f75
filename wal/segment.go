package wal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// Limit bounds one call of Committed; a zero field does not.
type Limit struct {
	Frames  uint32 // take the log to end after the frame of this number
	Bytes   int64  // stop at the first commit border at or after so many bytes of frames
	Commits int    // stop after so many commits
}

// PageRef says which frame holds the newest copy of a page; both count from 1.
type PageRef struct{ Pgno, Frame uint32 }

// Segment is a run of whole commits.
type Segment struct {
	From, To Mark
	Commit   uint32    // pages of the database after it; 0 when there is no commit in it
	Commits  int       // number of commits
	Pages    []PageRef // ascending by page; none beyond Commit
	More     bool      // Bytes or Commits ended it, there may be further commits within Frames
}

// Committed returns the whole commits after from. It verifies every byte it
// passes and stops silently at the first frame that does not continue the
// log, whether stale, torn or missing; frames after the last commit are left
// for a later call. A mark of another generation than h wraps ErrInvalid.
// Memory grows by 8 bytes for each frame passed.
func Committed(r io.ReaderAt, h Header, from Mark, limit Limit) (Segment, error) {
	if !validPageSize(h.PageSize) {
		return Segment{}, fmt.Errorf("read commits: %w: page size %d", ErrInvalid, h.PageSize)
	}
	if from.Salt1 != h.Salt1 || from.Salt2 != h.Salt2 {
		return Segment{}, fmt.Errorf("read commits: %w: the mark is not of this generation", ErrInvalid)
	}
	if limit.Frames == 0 {
		limit.Frames = math.MaxUint32
	}
	s := scan{h: h, limit: limit, at: from, out: Segment{From: from, To: from}}
	if err := s.run(r); err != nil {
		return Segment{}, fmt.Errorf("read commits after frame %d: %w", s.at.Frames, err)
	}
	s.out.Pages = newest(s.refs[:s.kept], s.out.Commit)
	return s.out, nil
}

// Sizes of one read: small at first, since most calls find one small commit.
const (
	firstRead = 64 << 10
	maxRead   = 256 << 10
)

// scan is the state of one call of Committed.
type scan struct {
	h     Header
	limit Limit
	at    Mark // after the last frame passed, committed or not
	refs  []PageRef
	kept  int // refs up to the last commit
	out   Segment
}

func (s *scan) run(r io.ReaderAt) error {
	size := s.h.frameSize()
	var buf []byte
	for want := max(1, firstRead/size); s.at.Frames < s.limit.Frames; want = min(2*want, maxRead/size) {
		want = int(min(int64(want), int64(s.limit.Frames-s.at.Frames)))
		if cap(buf) < want*size {
			buf = make([]byte, want*size)
		}
		buf = buf[:want*size]
		off := FrameOffset(s.at.Frames+1, s.h.PageSize) - frameHeaderSize
		n, err := r.ReadAt(buf, off)
		if n < len(buf) && err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		for b := buf[:n]; len(b) >= size; b = b[size:] {
			if !s.pass(b[:size]) {
				return nil
			}
		}
		if n < len(buf) {
			return nil
		}
	}
	return nil
}

// pass takes one frame and tells whether to go on.
func (s *scan) pass(b []byte) bool {
	f := parseFrame(b)
	if f.pgno == 0 || f.salt1 != s.h.Salt1 || f.salt2 != s.h.Salt2 {
		return false
	}
	sum := s.h.sum(s.h.sum(s.at.Sum, b[:8]), b[frameHeaderSize:])
	if sum != f.sum {
		return false
	}
	s.at.Frames++
	s.at.Sum = sum
	s.refs = append(s.refs, PageRef{Pgno: f.pgno, Frame: s.at.Frames})
	if f.commit == 0 {
		return true
	}
	s.kept = len(s.refs)
	s.out.To, s.out.Commit = s.at, f.commit
	s.out.Commits++
	return !s.full()
}

// full tells whether a limit ends the segment at this commit.
func (s *scan) full() bool {
	l := s.limit
	bytes := int64(len(s.refs)) * int64(s.h.frameSize())
	if (l.Commits == 0 || s.out.Commits < l.Commits) && (l.Bytes == 0 || bytes < l.Bytes) {
		return false
	}
	s.out.More = s.at.Frames < l.Frames
	return true
}

// newest sorts refs in place and keeps the newest of each page up to commit.
func newest(refs []PageRef, commit uint32) []PageRef {
	slices.SortFunc(refs, func(a, b PageRef) int {
		return cmp.Compare(uint64(a.Pgno)<<32|uint64(a.Frame), uint64(b.Pgno)<<32|uint64(b.Frame))
	})
	kept := refs[:0]
	for i, ref := range refs {
		if ref.Pgno > commit {
			break
		}
		if i+1 == len(refs) || refs[i+1].Pgno != ref.Pgno {
			kept = append(kept, ref)
		}
	}
	return kept
}
