//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
)

// badDisk is a place where a disk goes bad.
type badDisk struct {
	name  string
	path  func(r *reporting) string
	calls []int32
	says  string // the file that the error names
}

func badDisks() []badDisk {
	beside := func(suffix string) func(*reporting) string {
		return func(r *reporting) string { return r.path + suffix }
	}
	state := func(name string) func(*reporting) string {
		return func(r *reporting) string { return stateDir(r.path) + "/" + name }
	}
	bucket := func(r *reporting) string { return r.place.Dir + "/" }
	return []badDisk{
		{"reads of the WAL", beside("-wal"), rig.Reads, "live.db-wal"},
		{"reads of the database", beside(""), rig.Reads, "live.db"},
		{"writes to the database", beside(""), rig.Writes, "live.db"},
		{"syncs of the database", beside(""), rig.Syncs, "live.db"},
		{"syncs of the WAL", beside("-wal"), rig.Syncs, "live.db-wal"},
		{"writes to the spool", state("spool/"), rig.Writes, "spool"},
		{"reads of the spool", state("spool/"), rig.Reads, "spool"},
		{"writes to the page sums", state("sums"), rig.Writes, "sums"},
		{"reads of the page sums", state("sums"), rig.Reads, "sums"},
		{"writes to the replica", bucket, rig.Writes, "bucket"},
		{"syncs of the replica", bucket, rig.Syncs, "bucket"},
	}
}

// How the system and SQLite call EIO; the last one when SQLite reads.
var eio = []string{"input/output error", "disk I/O error", "disk image is malformed"}

func TestDiskThatGoesBadAndComesBack(t *testing.T) {
	t.Parallel()
	for _, bad := range badDisks() {
		t.Run(bad.name, func(t *testing.T) {
			t.Parallel()
			r := newReporting(t, t.TempDir())
			sidecar, disk := rig.TidemarkOn(t, nil, "replicate", "-config", r.conf)
			r.sidecar = sidecar
			awaitFile(t, r.place)
			r.settled(t)
			disk.Spoil(rig.Spoilt{Path: bad.path(r), Calls: bad.calls})
			rig.Eventually(t, rig.Limit, func(context.Context) error {
				r.overwriteRows(t, 200)
				if disk.Failed() == 0 {
					return errors.New("nothing failed")
				}
				return nil
			})
			r.awaitError(t, eio...)
			rig.Eventually(t, rig.Limit, func(context.Context) error {
				if len(r.troubles()) == 0 { // the status may tell an error before the log does
					return errors.New("no error is logged")
				}
				return nil
			})
			for range 5 { // the application goes on
				r.overwriteRows(t, 10)
			}
			disk.Mend()
			outages := strings.Count(sidecar.Output(), "level=ERROR")
			if told := r.troubles(); len(told) != 1 || !strings.Contains(told[0], bad.says) || outages > 1 {
				t.Errorf("told %q, want one error that names %s", told, bad.says)
			}
			r.mends(t, outages)
		})
	}
}

// troubles returns what the sidecar has logged of a bad disk.
func (r *reporting) troubles() (lines []string) {
	for line := range strings.Lines(r.sidecar.Output()) {
		bad := slices.ContainsFunc(eio, func(text string) bool { return strings.Contains(line, text) })
		if bad && (strings.Contains(line, "level=ERROR") || strings.Contains(line, "level=WARN")) {
			lines = append(lines, line)
		}
	}
	return lines
}
