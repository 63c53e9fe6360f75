package leaser

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrUnreadable is wrapped when the lock is there, but is no lock file of this
// product or of Litestream.
var ErrUnreadable = errors.New("the lock cannot be read")

const (
	// maxRecord is the size of the largest lock that is read or written.
	maxRecord = 256 << 10
	// maxGeneration fits into the upper half of the node number of LTX files.
	maxGeneration = math.MaxUint32
)

// State says what the writer of a lock does with it.
type State string

// The states of a lock. An empty one, as another program writes it, is held.
const (
	Held     State = "held"
	Released State = "released" // anybody may take it
	Handoff  State = "handoff"  // the successor may take it
)

// Record is the content of the lock. The first three fields have the meaning
// that Litestream gives them. Fields that are unknown are ignored.
type Record struct {
	Generation uint64          `json:"generation"` // counts the holders
	ExpiresAt  time.Time       `json:"expires_at"` // by the holder's wall clock; never a reason to take the lock
	Owner      string          `json:"owner"`      // node name and an identity, with a slash between them
	Nonce      string          `json:"nonce"`      // new in each write, so that no ETag repeats
	Seq        uint64          `json:"seq"`        // counts the writes
	TTLMillis  int64           `json:"ttl_ms"`
	State      State           `json:"state"`
	Cluster    string          `json:"cluster,omitempty"`
	BootID     string          `json:"boot_id,omitempty"` // of the holder; see Node
	Head       *Head           `json:"head,omitempty"`    // of the only database
	Heads      map[string]Head `json:"heads,omitempty"`   // of several databases, by name
	Names
}

// Names are the fields of a Record for and about other nodes.
type Names struct {
	Fence     string `json:"fence,omitempty"`     // TXID of the holder's first file, where there is one database
	Advertise string `json:"advertise,omitempty"` // URL of the holder
	Successor string `json:"successor,omitempty"` // node that a handoff is for
	Request   string `json:"request,omitempty"`   // node that asks for a handoff
	Leaving   bool   `json:"leaving,omitempty"`   // the holder is about to give the lease up
}

// Head is the confirmed end of one database in the replica.
type Head struct {
	TXID  uint64
	Chain string // checksum at TXID
}

type headJSON struct {
	TXID  string `json:"txid"`
	Chain string `json:"chain"`
}

// MarshalJSON writes the TXID as file names have it.
func (h Head) MarshalJSON() ([]byte, error) {
	return json.Marshal(headJSON{TXID: formatTXID(h.TXID), Chain: h.Chain})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (h *Head) UnmarshalJSON(text []byte) error {
	var in headJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	if _, err := fmt.Sscanf(in.TXID, "%016x", &h.TXID); err != nil || formatTXID(h.TXID) != in.TXID {
		return fmt.Errorf("txid %.40q: want 16 hexadecimal digits", in.TXID)
	}
	h.Chain = in.Chain
	return nil
}

func formatTXID(txid uint64) string { return fmt.Sprintf("%016x", txid) }

// ParseRecord reads a lock. It wraps ErrUnreadable.
func ParseRecord(text []byte) (Record, error) {
	var r Record
	if len(text) > maxRecord {
		return Record{}, fmt.Errorf("%w: longer than %d bytes", ErrUnreadable, maxRecord)
	}
	in := json.NewDecoder(bytes.NewReader(text))
	if err := in.Decode(&r); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if in.More() {
		return Record{}, fmt.Errorf("%w: something follows the JSON object", ErrUnreadable)
	}
	switch {
	case r.Generation == 0 || r.Generation > maxGeneration:
		return Record{}, fmt.Errorf("%w: generation %d", ErrUnreadable, r.Generation)
	case r.State != "" && r.State != Held && r.State != Released && r.State != Handoff:
		return Record{}, fmt.Errorf("%w: state %.40q", ErrUnreadable, r.State)
	case r.TTLMillis < 0:
		return Record{}, fmt.Errorf("%w: ttl_ms %d", ErrUnreadable, r.TTLMillis)
	}
	return r, nil
}

// encode writes a lock. Heads that would make it too long are left out.
func (r Record) encode() ([]byte, error) {
	text, err := json.Marshal(r)
	if err == nil && len(text) > maxRecord {
		r.Heads = nil
		text, err = json.Marshal(r)
	}
	if err != nil {
		return nil, fmt.Errorf("encode lock: %w", err)
	}
	return text, nil
}

// TTL is the time after which the holder says its lease is over.
func (r Record) TTL() time.Duration {
	return time.Duration(min(r.TTLMillis, int64(maxTTL/time.Millisecond))) * time.Millisecond
}

// AllHeads are the heads by database; the only one of a replica has no name.
func (r Record) AllHeads() map[string]Head {
	if r.Head != nil {
		return map[string]Head{"": *r.Head}
	}
	return r.Heads
}

// newNonce is never the same twice.
func newNonce() string {
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // never fails
	return hex.EncodeToString(nonce[:])
}
