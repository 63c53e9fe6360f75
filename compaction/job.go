package compaction

import (
	"fmt"

	"github.com/tidemark-io/tidemark/ltx"
)

// Job is one file to be made.
type Job struct {
	Level   int
	Sources []ltx.FileInfo // oldest first, each following or overlapping the one before; none: a snapshot
}

// Snapshot tells whether the file is a snapshot of the local database.
func (j Job) Snapshot() bool { return j.Level == ltx.LevelSnapshot }

// Target is the file to be made of the sources: it has their TXIDs.
func (j Job) Target() ltx.FileInfo {
	f := ltx.FileInfo{Level: j.Level}
	for i, s := range j.Sources {
		if i == 0 || s.Min < f.Min {
			f.Min = s.Min
		}
		f.Max = max(f.Max, s.Max)
	}
	return f
}

// half is a job of the first half of the sources.
func (j Job) half() Job { return Job{Level: j.Level, Sources: j.Sources[:(len(j.Sources)+1)/2]} }

// Hole is a range of TXIDs that no usable file holds, so that Level cannot be
// made beyond it. It is gone once the files are there, or a snapshot that
// reaches over it.
type Hole struct {
	Level    int
	Min, Max ltx.TXID
}

// String names the hole for messages.
func (h Hole) String() string { return fmt.Sprintf("%s-%s below level %d", h.Min, h.Max, h.Level) }

// isClaim tells whether f is a level-0 file without pages, as a writer leaves to
// claim its place.
func isClaim(f ltx.FileInfo) bool { return f.Level == 0 && f.Size == ltx.MinFileSize }

// usable tells whether f can be a file at all; others are as good as missing.
func usable(f ltx.FileInfo) bool { return f.Min >= 1 && f.Min <= f.Max && f.Size >= ltx.MinFileSize }
