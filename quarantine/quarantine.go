// Package quarantine keeps commits that cannot be uploaded because the replica
// went on without them: a full copy of the database, the LTX files that were
// never uploaded, and a manifest that says where the two histories part. An
// entry stays until somebody has acknowledged it. The package must not know how
// histories are compared, nor who may write.
package quarantine

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
)

var (
	// ErrUnknown is wrapped when there is no entry of that name.
	ErrUnknown = errors.New("there is no such entry in the quarantine")
	// ErrNotAcknowledged is wrapped by Remove.
	ErrNotAcknowledged = errors.New("the entry is not acknowledged")
	// ErrDamaged is wrapped when an entry is not what was set aside.
	ErrDamaged = errors.New("the entry is damaged")
)

// Position is a position as a manifest writes it.
type Position struct {
	TXID     ltx.TXID     `json:"txid"`
	Checksum ltx.Checksum `json:"checksum"`
}

// Side is what one of two histories holds at the first TXID that they do not
// share.
type Side struct {
	Generation uint64   `json:"generation"`
	At         Position `json:"at"`
}

// Object is the first object of the replica that is not from here.
type Object struct {
	Key  string `json:"key"`
	Size int64  `json:"size"` // bytes
	ETag string `json:"etag"`
}

// Manifest says what an entry holds and why. It never changes.
type Manifest struct {
	ID       string    `json:"id"`
	Node     string    `json:"node"`
	Database string    `json:"database"` // its path
	MadeAt   time.Time `json:"made_at"`
	First    ltx.TXID  `json:"first_txid"` // both 0: nothing is known of what the replica has of it
	Last     ltx.TXID  `json:"last_txid"`
	Base     Position  `json:"base"` // the last that both histories share; zero: unknown
	Local    Side      `json:"local"`
	Chain    Side      `json:"chain"`
	Foreign  Object    `json:"first_foreign_object"`
	Copy     Copy      `json:"copy"`
	Files    []File    `json:"files"`
}

// Copy describes the copy of the database.
type Copy struct {
	Checksum ltx.Checksum `json:"checksum"`  // of the whole database, as LTX files have it
	PageSize uint32       `json:"page_size"` // bytes
	Pages    uint32       `json:"pages"`
	Tables   []Table      `json:"tables"`
	Damage   string       `json:"damage,omitempty"` // what SQLite says against it; then it lies as it was found
}

// Table is a table and its number of rows.
type Table struct {
	Name string `json:"name"`
	Rows int64  `json:"rows"` // -1: SQLite alone cannot read it
}

// File is a file of an entry; its name is relative to the entry.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// Transactions is how many transactions of the replica's numbering are set
// aside, at least one.
func (m Manifest) Transactions() uint64 {
	if m.First == 0 || m.Last < m.First {
		return 1
	}
	return uint64(m.Last-m.First) + 1
}

// Entry is what was set aside at one time.
type Entry struct {
	Manifest
	Path         string    // its directory
	Acknowledged time.Time // zero: not yet
	Uploaded     Uploaded  // zero: not yet
	Problem      string    // why it cannot be read; then only ID, Path and times are known
}

// Uploaded tells where a copy of an entry is.
type Uploaded struct {
	At  time.Time `json:"at"`
	URL string    `json:"url"`
}

// Database is the path of the copy of the database.
func (e Entry) Database() string { return filepath.Join(e.Path, databaseName) }

// Dir is where the entries of a database are kept, below its state directory.
func Dir(state string) string { return filepath.Join(state, "quarantine") }

const (
	manifestName = "manifest.json"
	databaseName = "database.db"
	ltxName      = "ltx"
	ackName      = "acknowledged.json"
	uploadName   = "uploaded.json"
	// tempSuffix ends the name of a directory that is being made or removed.
	tempSuffix = ".tmp"
)
