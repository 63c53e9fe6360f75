package compaction

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/tidemark-io/tidemark/internal/scratch"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

const (
	trays    = 8       // files that a Shelf has its copies in
	fullTray = 4 << 10 // copies in one, however small: each costs memory
)

// Shelf keeps copies of the files that this process stored last, of all
// replicas: what is merged soon need not be fetched, and what is lost on the
// bucket can be stored again. It takes a bounded part of the scratch space and
// few descriptors; the oldest copies go first. It must end with the right to
// write, because what others stored since may be something else. It remembers
// which snapshots do not fit into the scratch space, too. It is safe for
// concurrent use.
type Shelf struct {
	space *scratch.Space
	tray  int64 // bytes of one
	unfit *unfit

	mu     sync.Mutex
	trays  []*tray // oldest first; the last one is filled
	copies map[shelved]place
}

// shelved names a file of a replica.
type shelved struct {
	replica string
	fileKey
}

// place is where a copy is.
type place struct {
	tray         *tray
	offset, size int64
}

// tray is a scratch file with many copies.
type tray struct {
	file   *scratch.File
	copies []shelved
	users  int  // of copies
	gone   bool // closed by the last user
}

// NewShelf returns a shelf that takes at most limit bytes of s, and no more
// than an eighth of what s may take.
func NewShelf(s *scratch.Space, limit int64) *Shelf {
	if s.Limit() > 0 {
		limit = min(limit, s.Limit()/8)
	}
	return &Shelf{space: s, tray: limit / trays, unfit: &unfit{until: map[string]time.Time{}}, copies: map[shelved]place{}}
}

// Keep copies the content of a file that is on the bucket, unless it is too
// large. A full scratch space is no error.
func (s *Shelf) Keep(r *replica.Replica, f ltx.FileInfo, content io.Reader) error {
	if f.Size > s.tray {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.put(shelved{r.String(), keyOf(f)}, f.Size, content)
	if errors.Is(err, scratch.ErrScratchFull) {
		return s.clear()
	}
	if err != nil {
		return fmt.Errorf("keep a copy of %s: %w", r.Key(f), err)
	}
	return nil
}

func (s *Shelf) put(name shelved, size int64, content io.Reader) error {
	t, err := s.room(size)
	if err != nil {
		return err
	}
	offset := t.file.Size()
	n, err := io.Copy(t.file, io.LimitReader(content, size))
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	s.copies[name] = place{t, offset, size}
	t.copies = append(t.copies, name)
	return nil
}

// room returns the tray that has room for a copy.
func (s *Shelf) room(size int64) (*tray, error) {
	if n := len(s.trays); n > 0 && s.trays[n-1].file.Size()+size <= s.tray && len(s.trays[n-1].copies) < fullTray {
		return s.trays[n-1], nil
	}
	if len(s.trays) == trays {
		if err := s.drop(); err != nil {
			return nil, err
		}
	}
	file, err := s.space.Create()
	if err != nil {
		return nil, err
	}
	s.trays = append(s.trays, &tray{file: file})
	return s.trays[len(s.trays)-1], nil
}

// drop forgets the oldest tray.
func (s *Shelf) drop() error {
	t := s.trays[0]
	s.trays = s.trays[1:]
	for _, name := range t.copies {
		if s.copies[name].tray == t {
			delete(s.copies, name)
		}
	}
	t.gone = true
	if t.users > 0 {
		return nil
	}
	return t.file.Close()
}

func (s *Shelf) clear() error {
	var errs []error
	for len(s.trays) > 0 {
		errs = append(errs, s.drop())
	}
	return errors.Join(errs...)
}

// Close removes all copies. The shelf may be used on.
func (s *Shelf) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clear()
}

// open returns the copy of a file, if it has the size of the file.
func (s *Shelf) open(r *replica.Replica, f ltx.FileInfo) (*shelfCopy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.copies[shelved{r.String(), keyOf(f)}]
	if !ok || p.size != f.Size {
		return nil, fmt.Errorf("%s: %w", r.Key(f), fs.ErrNotExist)
	}
	p.tray.users++
	return &shelfCopy{SectionReader: p.tray.file.Written(p.offset, p.size), shelf: s, tray: p.tray}, nil
}

// forget drops the copies of files that were deleted.
func (s *Shelf) forget(r *replica.Replica, files []ltx.FileInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range files {
		delete(s.copies, shelved{r.String(), keyOf(f)})
	}
}

// list returns the files of a replica that are here.
func (s *Shelf) list(r *replica.Replica) (files []ltx.FileInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, p := range s.copies {
		if name.replica == r.String() {
			files = append(files, ltx.FileInfo{Level: name.level, Min: name.min, Max: name.max, Size: p.size})
		}
	}
	return files
}

// shelfCopy is a copy in use.
type shelfCopy struct {
	*io.SectionReader
	shelf *Shelf
	tray  *tray
}

// Reader returns a reader of the whole copy.
func (c *shelfCopy) Reader() *io.SectionReader {
	return io.NewSectionReader(c.SectionReader, 0, c.Size())
}

// Close ends the use.
func (c *shelfCopy) Close() error {
	c.shelf.mu.Lock()
	defer c.shelf.mu.Unlock()
	if c.tray.users--; c.tray.gone && c.tray.users == 0 {
		return c.tray.file.Close()
	}
	return nil
}
