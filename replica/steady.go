package replica

import (
	"errors"
	"fmt"
	"os"
)

// steady is a file that must not change while it is read: what is sent to the
// bucket can never be taken back.
type steady struct {
	f    *os.File
	info os.FileInfo
}

func openSteady(path string) (*steady, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &steady{f: f, info: info}, nil
}

// Seek implements io.Seeker.
func (s *steady) Seek(offset int64, whence int) (int64, error) { return s.f.Seek(offset, whence) }

// Close closes the file.
func (s *steady) Close() error { return s.f.Close() }

// Read fails if the file was written to since it was opened.
func (s *steady) Read(b []byte) (int, error) {
	n, err := s.f.Read(b)
	if changed := s.same(); changed != nil {
		return 0, changed
	}
	return n, err
}

// ReadAt fails if the file was written to since it was opened.
func (s *steady) ReadAt(b []byte, off int64) (int, error) {
	n, err := s.f.ReadAt(b, off)
	if changed := s.same(); changed != nil {
		return 0, changed
	}
	return n, err
}

func (s *steady) same() error {
	now, err := s.f.Stat()
	if err != nil {
		return err
	}
	if now.Size() != s.info.Size() || !now.ModTime().Equal(s.info.ModTime()) {
		return fmt.Errorf("%s was written to by somebody else while it was uploaded", s.f.Name())
	}
	return nil
}
