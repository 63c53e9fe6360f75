// Package ltx reads and writes LTX files: the pages that one range of
// transactions changed, with a checksum of the database before and after.
//
// The wire structs and small types are those of github.com/superfly/ltx, the
// reference implementation, whose README is the specification; the code that
// touches every page is ours. The package is pure: it knows streams and
// numbers, never a database that is in use, a bucket or a key.
package ltx

import (
	"time"

	"github.com/superfly/ltx"
)

// The wire types, as github.com/superfly/ltx defines them.
type (
	// Header is the first 100 bytes of a file.
	Header = ltx.Header
	// Trailer is the last 16 bytes of a file.
	Trailer = ltx.Trailer
	// PageHeader precedes each page frame.
	PageHeader = ltx.PageHeader
	// TXID numbers the level-0 files of one database, from 1, never reused.
	TXID = ltx.TXID
	// Checksum is a CRC-64/ISO with the top bit set, so that it is never zero.
	Checksum = ltx.Checksum
	// Pos is a TXID and the checksum of the whole database after it.
	Pos = ltx.Pos
)

// Sizes and flags of the format.
const (
	HeaderSize     = ltx.HeaderSize
	TrailerSize    = ltx.TrailerSize
	PageHeaderSize = ltx.PageHeaderSize
	Version        = ltx.Version

	// ChecksumFlag is the top bit, set in every checksum. By itself it is the
	// checksum of an empty database.
	ChecksumFlag = ltx.ChecksumFlag
	// FlagNoChecksum marks a file that carries no database checksums.
	FlagNoChecksum = ltx.HeaderFlagNoChecksum
)

// LevelSnapshot is the level of files that hold every page.
const LevelSnapshot = 9

// MinFileSize is the size in bytes of a file without pages, which is the least:
// header, end of pages, empty index with its size, trailer.
const MinFileSize = HeaderSize + PageHeaderSize + 1 + 8 + TrailerSize

// FileInfo says what can be known of a file from a listing.
type FileInfo struct {
	Level    int
	Min, Max TXID
	Size     int64 // bytes
	ModTime  time.Time
}

// IsSnapshot tells whether the file holds every page of the database.
func (f FileInfo) IsSnapshot() bool { return f.Min == 1 }

// LockPgno returns the number of the page that holds SQLite's lock bytes
// (SQLite file format, section 1.5); no LTX file ever contains it.
func LockPgno(pageSize uint32) uint32 { return ltx.LockPgno(pageSize) }

// ValidPageSize tells whether SQLite allows size.
func ValidPageSize(size uint32) bool { return ltx.IsValidPageSize(size) }
