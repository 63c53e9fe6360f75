// Package scratch is the disk space for files that exist only while a job
// runs: merged files, snapshots, what a restore puts aside. All jobs of a
// process share one private directory, made when it is first needed, and one
// budget of bytes. The package knows nothing of what is in the files.
package scratch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// ErrScratchFull is wrapped by FullError.
var ErrScratchFull = errors.New("scratch space is full")

// ErrClosed is returned by Create once the Space was closed.
var ErrClosed = errors.New("scratch space is closed")

// FullError says that a write would pass the budget. Nothing was written.
type FullError struct {
	Dir  string // where the scratch files are
	Cap  int64  // bytes that may be used
	Used int64  // bytes in use by all files
	Want int64  // bytes that were to be added
}

// Error names the figures and the way out.
func (e *FullError) Error() string {
	return fmt.Sprintf("%v: %d of %d bytes in use below %s, %d more needed; raise scratch-limit",
		ErrScratchFull, e.Used, e.Cap, e.Dir, e.Want)
}

// Unwrap makes errors.Is(err, ErrScratchFull) true.
func (e *FullError) Unwrap() error { return ErrScratchFull }

// Space is the scratch space of a process. It is safe for concurrent use.
type Space struct {
	root  string
	limit int64

	mu     sync.Mutex
	dir    *processDir // nil: not needed so far
	used   int64
	files  map[*File]struct{}
	closed bool
}

// New returns a space of at most limit bytes (0: no limit) below the directory
// root. Nothing is made before the first Create.
func New(root string, limit int64) (*Space, error) {
	if root == "" {
		return nil, errors.New("scratch space: no directory given")
	}
	if limit < 0 {
		return nil, fmt.Errorf("scratch-limit %d: negative; 0 means no limit", limit)
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("scratch space: %w", err)
	}
	return &Space{root: root, limit: limit, files: map[*File]struct{}{}}, nil
}

// Create makes an empty file. The first one makes the directory and clears
// away what crashed processes left.
func (s *Space) Create() (*File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("create scratch file: %w", ErrClosed)
	}
	if s.dir == nil {
		dir, err := newProcessDir(s.root)
		if err != nil {
			return nil, fmt.Errorf("make scratch directory below %s: %w", s.root, err)
		}
		s.dir = dir
	}
	f, err := os.CreateTemp(s.dir.path, "f-") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	file := &File{space: s, file: f}
	s.files[file] = struct{}{}
	return file, nil
}

// Used returns the bytes in use by all files.
func (s *Space) Used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// Limit returns the budget; 0: there is none.
func (s *Space) Limit() int64 { return s.limit }

// Close closes all files and removes the directory. Files in use fail from
// then on.
func (s *Space) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	var open []*File
	for f := range s.files {
		open = append(open, f)
	}
	dir := s.dir
	s.mu.Unlock()
	var errs []error
	for _, f := range open {
		errs = append(errs, f.Close())
	}
	if dir != nil {
		errs = append(errs, dir.remove())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close scratch space: %w", err)
	}
	return nil
}

// take reserves n bytes.
func (s *Space) take(n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit > 0 && n > s.limit-s.used {
		return &FullError{Dir: s.root, Cap: s.limit, Used: s.used, Want: n}
	}
	s.used += n
	return nil
}

// release gives n bytes back.
func (s *Space) release(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
}

// forget drops a file that was closed.
func (s *Space) forget(f *File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.files, f)
}
