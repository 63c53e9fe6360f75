package apply

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/tidemark-io/tidemark/ltx"
)

// Where page 1 holds what a copy holds otherwise (SQLite file format, section
// 1.3).
const (
	headerSize = 100

	atPageSize = 16
	atVersions = 18 // two bytes: 1 is rollback journal, 2 is WAL
	atCounter  = 24 // change counter, four bytes
	atValidFor = 92 // the change counter for which the size in the header is right
)

// emptyPageSize stands for the page size of a file without pages.
const emptyPageSize = 4096

const magic = "SQLite format 3\x00"

// header is the start of page 1.
type header [headerSize]byte

// side is the copy before or after a change.
type side struct {
	pos             ltx.Pos
	pageSize, pages uint32
	chain           header // as the chain has it
	shown           header // as the file has it
}

func (h *header) inWAL() bool     { return h[atVersions] == 2 || h[atVersions+1] == 2 }
func (h *header) counter() uint32 { return binary.BigEndian.Uint32(h[atCounter:]) }

// pageSize is 0 where the header is none.
func (h *header) pageSize() uint32 {
	size := uint32(binary.BigEndian.Uint16(h[atPageSize:]))
	if size == 1 {
		size = 65536
	}
	if string(h[:len(magic)]) != magic || !ltx.ValidPageSize(size) {
		return 0
	}
	return size
}

// show returns a header as the copy is to have it: in rollback-journal mode,
// with a change counter of its own. Whether the size in the header is right
// stays as it is.
func (h header) show(counter uint32) header {
	valid := binary.BigEndian.Uint32(h[atValidFor:]) == h.counter()
	h[atVersions], h[atVersions+1] = 1, 1
	binary.BigEndian.PutUint32(h[atCounter:], counter)
	if !valid {
		counter--
	}
	binary.BigEndian.PutUint32(h[atValidFor:], counter)
	return h
}

// nextCounter is the change counter after this side. Readers keep what they
// have read as long as the counter stays, over promotions too, so the first one
// of a copy is far from all that the chain may count to.
func (s *side) nextCounter() uint32 {
	if s.shown == s.chain {
		return 1<<31 | rand.Uint32()>>1
	}
	return s.shown.counter() + 1
}

// size is that of the file in bytes.
func (s *side) size() int64 { return int64(s.pages) * int64(s.pageSize) }

// lock is the number of the page that never is written.
func (s *side) lock() uint32 {
	if s.pageSize == 0 {
		return 0
	}
	return ltx.LockPgno(s.pageSize)
}
