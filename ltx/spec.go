package ltx

import (
	"bytes"
	"fmt"
	"io"
)

// Spec is the picture of a whole file in memory, so that a test can state one.
type Spec struct {
	Header    Header
	Pages     []PageSpec
	PostApply Checksum
}

// PageSpec is one page of a Spec.
type PageSpec struct {
	Pgno uint32
	Data []byte
}

// WriteTo encodes the file to w and returns its size.
func (s *Spec) WriteTo(w io.Writer) (int64, error) {
	e, err := NewEncoder(w, s.Header)
	if err != nil {
		return 0, err
	}
	for _, p := range s.Pages {
		if _, err := e.WritePage(p.Pgno, p.Data); err != nil {
			return e.N(), fmt.Errorf("write page %d: %w", p.Pgno, err)
		}
	}
	_, err = e.Close(s.PostApply)
	return e.N(), err
}

// ReadFrom replaces s with the file in r, which it verifies, and returns its
// size.
func (s *Spec) ReadFrom(r io.Reader) (int64, error) {
	d, err := NewDecoder(r)
	if err != nil {
		return 0, err
	}
	*s = Spec{Header: d.Header()}
	for p, err := range d.Pages() {
		if err != nil {
			return d.N(), err
		}
		s.Pages = append(s.Pages, PageSpec{Pgno: p.Pgno, Data: bytes.Clone(p.Data)})
	}
	t, err := d.Close()
	s.PostApply = t.PostApplyChecksum
	return d.N(), err
}
