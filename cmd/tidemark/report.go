package main

import (
	"os"
	"time"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/ltx"
)

// States of a database in a Report.
const (
	stateStarting    = "starting"    // not opened yet
	stateWaiting     = "waiting"     // there is no database yet
	stateReplicating = "replicating" // all is well
	stateFailing     = "failing"     // Error says why; it is tried again
	stateFenced      = "fenced"      // another process writes the replica; given up
	stateFollowing   = "following"   // a copy of what the primary writes
)

// Report is the answer of a running sidecar about itself.
type Report struct {
	PID       int              `json:"pid"`
	Version   string           `json:"version"`
	Started   time.Time        `json:"started"`
	Lease     *RoleReport      `json:"lease,omitempty"` // nil: there is none
	Databases []DatabaseReport `json:"databases"`
}

// DatabaseReport is the state of one database.
type DatabaseReport struct {
	Path       string   `json:"path"`
	Replica    string   `json:"replica"`
	State      string   `json:"state"`
	Captured   Position `json:"captured"`
	Uploaded   Position `json:"uploaded"`
	LagSeconds float64  `json:"lag_seconds"` // age of the oldest commit that is not uploaded; see lag
	SpoolFiles int      `json:"spool_files"`
	SpoolBytes int64    `json:"spool_bytes"`
	Done
	Proof      *ProofReport      `json:"proof,omitempty"`      // nil: nothing was read again
	Compaction *CompactionReport `json:"compaction,omitempty"` // nil: nothing is known yet
	Trouble
}

// Done is what this process did for a database.
type Done struct {
	UploadedBytes int64  `json:"uploaded_bytes"`
	Resyncs       int    `json:"resyncs,omitempty"`
	WriteLocks    int    `json:"write_locks,omitempty"`              // times SQLite's write lock was held
	Quarantined   uint64 `json:"quarantined_transactions,omitempty"` // set aside by this node and not acknowledged
}

// Trouble is what is wrong with a database; zero: nothing.
type Trouble struct {
	Error        string    `json:"error,omitempty"`
	FailingSince time.Time `json:"failing_since,omitzero"`
}

// lag is the age in seconds of the oldest commit that is not uploaded; 0:
// none. While capturing fails nobody knows what is committed, so it is at least
// the time since it began to.
func (p *parts) lag() float64 {
	lag := p.source.lag()
	if since := p.capturer.Status().FailingSince; !since.IsZero() {
		lag = max(lag, time.Since(since))
	}
	return lag.Seconds()
}

// Position is a transaction and the checksum of the database after it; both
// are zero when there is none yet.
type Position struct {
	TXID     uint64 `json:"txid"`
	Checksum string `json:"checksum,omitempty"` // empty: unknown
}

func position(p ltx.Pos) Position {
	if p.PostApplyChecksum == 0 {
		return Position{TXID: uint64(p.TXID)}
	}
	return Position{TXID: uint64(p.TXID), Checksum: p.PostApplyChecksum.String()}
}

// Report returns the state of the database now.
func (d *replicated) Report() DatabaseReport {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := DatabaseReport{Path: d.cfg.Path, Replica: d.remote.place.String(), State: stateStarting}
	if d.parts != nil {
		d.parts.describe(&r, d.remote.lastTip().Pos)
	}
	if d.err != nil {
		r.State, r.Error, r.FailingSince = stateFailing, d.err.Error(), d.since
	}
	if isFenced(d.err) {
		r.State = stateFenced
	}
	return r
}

// note remembers why an attempt to run ended, and since when it does so.
func (d *replicated) note(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil || err == nil {
		d.since = time.Now()
	}
	d.err = err
}

// hasContent tells whether there may be a database at path.
func hasContent(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}

func (p *parts) describe(r *DatabaseReport, tip ltx.Pos) {
	captured, uploaded := p.capturer.Status(), p.uploader.Status()
	there := uploaded.Pos
	if tip.TXID > there.TXID {
		there = tip
	}
	if there.TXID > captured.Pos.TXID { // the picture of capture is the older one
		captured.Pos = there
	}
	r.Captured, r.Uploaded = position(captured.Pos), position(there)
	r.LagSeconds = p.lag()
	r.SpoolFiles, r.SpoolBytes = p.capturer.Spool().Size()
	r.UploadedBytes = uploaded.Bytes
	r.Resyncs, r.WriteLocks = captured.Resyncs, captured.WriteLocks
	if p.worker != nil {
		r.Compaction = newCompactionReport(p.worker.Status())
	}
	switch {
	case captured.LastError != "":
		r.State, r.Error, r.FailingSince = stateFailing, captured.LastError, captured.FailingSince
	case uploaded.LastError != nil:
		r.State, r.Error, r.FailingSince = stateFailing, uploaded.LastError.Error(), uploaded.ErrorSince
	case captured.State == capture.StateWaiting && hasContent(r.Path):
		r.State = stateStarting // it was not looked at yet
	case captured.State == capture.StateWaiting:
		r.State = stateWaiting
	default:
		r.State = stateReplicating
	}
}
