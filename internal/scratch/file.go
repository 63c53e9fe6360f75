package scratch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// ErrSealed is returned by Write once the file is read.
var ErrSealed = errors.New("scratch file is sealed")

// File is a file that is written once, from start to end, and then read. Who
// created it closes it, which removes it and returns its bytes to the budget.
// Reads are safe together; Close waits for none of them.
type File struct {
	space *Space
	file  *os.File

	mu     sync.Mutex
	size   int64
	sealed bool
	closed bool
}

// Write appends b, all or (for an error of the budget) nothing of it. The
// error is a FullError, ErrSealed or one of the file system.
func (f *File) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return 0, fmt.Errorf("write scratch file: %w", os.ErrClosed)
	case f.sealed:
		return 0, fmt.Errorf("write scratch file: %w", ErrSealed)
	}
	if err := f.space.take(int64(len(b))); err != nil {
		return 0, err
	}
	n, err := f.file.Write(b)
	f.size += int64(n)
	if err != nil {
		f.space.release(int64(len(b) - n))
		return n, fmt.Errorf("write scratch file: %w", err)
	}
	return n, nil
}

// Size returns the bytes written.
func (f *File) Size() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.size
}

// Reader returns a reader of the whole content and seals the file.
func (f *File) Reader() *io.SectionReader { return f.Section(0, f.Size()) }

// Section returns a reader of a part of the content and seals the file.
func (f *File) Section(offset, length int64) *io.SectionReader {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sealed = true
	return io.NewSectionReader(f.file, offset, length)
}

// Close removes the file. It may be called again.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	err := errors.Join(f.file.Close(), ignoreMissing(os.Remove(f.file.Name())))
	f.space.release(f.size)
	f.space.forget(f)
	if err != nil {
		return fmt.Errorf("remove scratch file: %w", err)
	}
	return nil
}

// Written returns a reader of a part that was written already, which does not
// seal the file.
func (f *File) Written(offset, length int64) *io.SectionReader {
	return io.NewSectionReader(f.file, offset, length)
}
