package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/tidemark-io/tidemark/compaction"
)

// CompactionReport is what is known of the files of a replica, and whether they
// are merged and deleted as they should be. A failure here is no failure to
// replicate.
type CompactionReport struct {
	SnapshotTXID uint64        `json:"snapshot_txid,omitempty"` // of the newest; 0: none is known
	SnapshotAt   time.Time     `json:"snapshot_at,omitzero"`
	SnapshotSize int64         `json:"snapshot_bytes,omitempty"`
	Levels       []LevelReport `json:"levels,omitempty"` // empty: not listed yet
	Holes        int           `json:"holes,omitempty"`  // ranges of transactions that are missing and stop a level
	Trouble
}

// LevelReport counts the files of one level.
type LevelReport struct {
	Level int   `json:"level"`
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

func newCompactionReport(s compaction.Status) *CompactionReport {
	r := &CompactionReport{Holes: s.Holes}
	if s.Error != nil {
		r.Error, r.FailingSince = s.Error.Error(), s.Since
	}
	if !s.Listed {
		return r
	}
	if s.Snapshot.Max > 0 {
		r.SnapshotTXID, r.SnapshotAt, r.SnapshotSize = uint64(s.Snapshot.Max), s.Snapshot.ModTime.UTC(), s.Snapshot.Size
	}
	for level, n := range s.Files {
		if n > 0 {
			r.Levels = append(r.Levels, LevelReport{Level: level, Files: n, Bytes: s.Bytes[level]})
		}
	}
	return r
}

// snapshot is the newest one in a word.
func (r *CompactionReport) snapshot() string {
	if r == nil || r.SnapshotTXID == 0 {
		return "-"
	}
	return fmt.Sprintf("%d (%s)", r.SnapshotTXID, humanize.Time(r.SnapshotAt))
}

// files are those of each level in a word.
func (r *CompactionReport) files() string {
	if r == nil {
		return "-"
	}
	var words []string
	for _, l := range r.Levels {
		words = append(words, fmt.Sprintf("%d:%d", l.Level, l.Files))
	}
	return orDash(strings.Join(words, " "))
}

// trouble is what to show as the error of a database.
func (r DatabaseReport) trouble() string {
	if r.Error == "" && r.Compaction != nil && r.Compaction.Error != "" {
		return "compaction: " + r.Compaction.Error
	}
	return r.Error
}
