package ltx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// PageSums is a file with the checksum of every page of one database at one
// position: 8 bytes a page after a header block. It answers which pages of a
// database differ from that position without reading the position's pages.
//
// The file is read and written through one small window, so memory does not
// grow with the database, and a full disk or a failing device is an error and
// not a fault of a memory mapping. An update is bracketed by Begin and Commit;
// a process killed between them leaves the file Interrupted, and repeating the
// same update heals it. PageSums is not safe for concurrent use.
type PageSums struct {
	f           *os.File
	head        sumsHeader
	window      [sumsWindow]byte
	first       uint32 // page number of the first sum in the window; 0: none
	dirty       bool
	interrupted bool
}

type sumsHeader struct {
	pageSize uint32
	pages    uint32
	pos      Pos
}

const (
	sumsMagic  = "TIDESUM1"
	sumsStart  = 4096
	sumsWindow = 4096
	sumsPerWin = sumsWindow / ChecksumSize
	sumsClean  = 1
	sumsBusy   = 2
)

// ChecksumSize is the size of a checksum in bytes.
const ChecksumSize = 8

// OpenPageSums opens the file at path, or creates an empty one, readable by
// its owner only. A file that fails its own check is returned empty: what it
// said is lost, never guessed.
func OpenPageSums(path string) (*PageSums, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open page sums: %w", err)
	}
	s := &PageSums{f: f}
	err = s.load()
	if errors.Is(err, ErrCorrupt) {
		err = s.Reset()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read page sums %s: %w", path, err), f.Close())
	}
	return s, nil
}

// Pos returns the position the sums belong to; the zero Pos when there is
// none.
func (s *PageSums) Pos() Pos { return s.head.pos }

// PageSize returns the page size of the database in bytes, 0 when unknown.
func (s *PageSums) PageSize() uint32 { return s.head.pageSize }

// Pages returns the size of the database in pages.
func (s *PageSums) Pages() uint32 { return s.head.pages }

// Interrupted tells that an update was begun and not committed: the sums are
// between two positions until that update is repeated.
func (s *PageSums) Interrupted() bool { return s.interrupted }

// Sum returns the checksum of a page; 0 for the lock page and for pages
// beyond the end.
func (s *PageSums) Sum(pgno uint32) (Checksum, error) {
	if pgno == 0 || pgno > s.head.pages {
		return 0, nil
	}
	at, err := s.seek(pgno)
	if err != nil {
		return 0, err
	}
	return Checksum(binary.LittleEndian.Uint64(s.window[at:])), nil
}

// Tail returns the XOR of the checksums of all pages above pgno: what a
// database that shrinks to pgno pages loses.
func (s *PageSums) Tail(pgno uint32) (Checksum, error) {
	var x Checksum
	for p := pgno + 1; p <= s.head.pages; p++ {
		sum, err := s.Sum(p)
		if err != nil {
			return 0, err
		}
		x ^= sum
	}
	return x, nil
}

// Begin marks the file as being updated.
func (s *PageSums) Begin() error {
	s.interrupted = true
	return s.writeHead(sumsBusy)
}

// Set stores the checksum of a page; only between Begin and Commit.
func (s *PageSums) Set(pgno uint32, sum Checksum) error {
	at, err := s.seek(pgno)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(s.window[at:], uint64(sum))
	s.dirty = true
	return nil
}

// Commit ends an update: the sums now belong to pos, of a database of pages
// pages of pageSize bytes. Sums beyond the end are dropped.
func (s *PageSums) Commit(pos Pos, pageSize, pages uint32) error {
	if err := s.flush(); err != nil {
		return err
	}
	if pages < s.head.pages {
		s.first = 0
	}
	if err := s.f.Truncate(sumsStart + int64(pages)*ChecksumSize); err != nil {
		return fmt.Errorf("size page sums: %w", err)
	}
	s.head = sumsHeader{pageSize: pageSize, pages: pages, pos: pos}
	if err := s.writeHead(sumsClean); err != nil {
		return err
	}
	s.interrupted = false
	return nil
}

// Reset forgets everything.
func (s *PageSums) Reset() error {
	s.first, s.dirty, s.interrupted = 0, false, false
	s.head = sumsHeader{}
	if err := s.f.Truncate(sumsStart); err != nil {
		return fmt.Errorf("empty page sums: %w", err)
	}
	return s.writeHead(sumsClean)
}

// Close closes the file.
func (s *PageSums) Close() error { return errors.Join(s.flush(), s.f.Close()) }

// seek moves the window over pgno and returns the offset of its sum in it.
func (s *PageSums) seek(pgno uint32) (int, error) {
	i := int64(pgno - 1)
	if s.first != 0 && i >= int64(s.first-1) && i < int64(s.first-1)+sumsPerWin {
		return int(i-int64(s.first-1)) * ChecksumSize, nil
	}
	if err := s.flush(); err != nil {
		return 0, err
	}
	start := i / sumsPerWin * sumsPerWin
	s.first = 0
	n, err := s.f.ReadAt(s.window[:], sumsStart+start*ChecksumSize)
	if err != nil && !isEOF(err) {
		return 0, fmt.Errorf("read page sums: %w", err)
	}
	clear(s.window[n:])
	s.first = uint32(start) + 1
	return int(i-start) * ChecksumSize, nil
}

func (s *PageSums) flush() error {
	if !s.dirty {
		return nil
	}
	if _, err := s.f.WriteAt(s.window[:], sumsStart+int64(s.first-1)*ChecksumSize); err != nil {
		return fmt.Errorf("write page sums: %w", err)
	}
	s.dirty = false
	return nil
}
