package s3

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// errBody marks errors of the body that a caller wants stored.
var errBody = errors.New("read body")

// source is a body to store, and remembers why reading it failed: the SDK and
// the transport report that in their own ways.
type source struct {
	r    io.ReadSeeker
	at   io.ReaderAt // nil: one section at a time
	size int64

	mu    sync.Mutex
	cause error
}

func newSource(r io.ReadSeeker) (*source, error) {
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("size of body: %w", err)
	}
	at, _ := r.(io.ReaderAt)
	return &source{r: r, at: at, size: size}, nil
}

// section returns n bytes from offset. Without ReaderAt only the newest
// section may be used.
func (s *source) section(offset, n int64) io.ReadSeeker {
	if s.at != nil {
		return &section{src: s, r: io.NewSectionReader(s.at, offset, n)}
	}
	return &section{src: s, r: &window{r: s.r, base: offset, size: n}}
}

func (s *source) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

type section struct {
	src *source
	r   io.ReadSeeker
}

func (s *section) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.note(err)
	return n, err
}

func (s *section) Seek(offset int64, whence int) (int64, error) {
	n, err := s.r.Seek(offset, whence)
	s.note(err)
	return n, err
}

func (s *section) note(err error) {
	if err != nil && !errors.Is(err, io.EOF) {
		s.src.mu.Lock()
		defer s.src.mu.Unlock()
		s.src.cause = err
	}
}

// window is a section of what can only be read and sought.
type window struct {
	r          io.ReadSeeker
	base, size int64
	pos        int64
	placed     bool // r stands at base+pos
}

func (w *window) Read(p []byte) (int, error) {
	if w.pos >= w.size {
		return 0, io.EOF
	}
	if !w.placed {
		if _, err := w.r.Seek(w.base+w.pos, io.SeekStart); err != nil {
			return 0, err
		}
		w.placed = true
	}
	n, err := w.r.Read(p[:min(int64(len(p)), w.size-w.pos)])
	w.pos += int64(n)
	if errors.Is(err, io.EOF) && w.pos < w.size {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (w *window) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += w.pos
	case io.SeekEnd:
		offset += w.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the start")
	}
	w.pos, w.placed = offset, false
	return offset, nil
}
