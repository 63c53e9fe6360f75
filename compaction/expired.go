package compaction

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
)

// Claims of writers are kept so that a writer that stalled before one cannot
// create its name again: all of some days, and so many at least.
const (
	claimsKept = 16
	claimsFor  = 7 * 24 * time.Hour
)

// Expired returns the files that may be deleted. The rule for all of them: a
// file goes when one other file that stays holds all that it does, is of a
// higher level (or of the same and holds more), and both have been there for
// the retention: that of level 0 for its files, else the window. A snapshot
// stands in for files only when it is older than the window, because whoever
// is within the window goes on by increments.
//
// So everything that could be restored within the retention still can: the
// newest state, every captured state for the retention of level 0, whatever
// ends a file of level 1 or above for the window. A position within the window
// still reaches the newest one, without snapshots if it did so before.
//
// Names that a stalled writer could take again are never given free: the
// newest file of level 0, the claims of some time, and nothing younger than
// the retention of level 0. What is not confirmed is neither deleted nor
// stands in for anything.
func Expired(files []ltx.FileInfo, r Retention, confirmed ltx.TXID, now time.Time) []ltx.FileInfo {
	return expired(files, nil, r, confirmed, now)
}

// expired does so beside files that are damaged: these stand in for none.
func expired(files, damaged []ltx.FileInfo, r Retention, confirmed ltx.TXID, now time.Time) []ltx.FileInfo {
	if r.External {
		return nil
	}
	known := among(files, confirmed)
	all := slices.Concat(known, among(damaged, confirmed))
	kept := newNames(all, now)
	young, old := newCover(known, r.Level0, r.Window, now), newCover(known, r.Window, r.Window, now)
	var gone []ltx.FileInfo
	for _, f := range all {
		age, cover := r.Window, old
		if f.Level == 0 && !f.IsSnapshot() {
			age, cover = r.Level0, young
		}
		if now.Sub(f.ModTime) >= age && !kept.has(f) && cover.holds(f) {
			gone = append(gone, f)
		}
	}
	return gone
}

// among returns those that are files at all, and confirmed.
func among(files []ltx.FileInfo, confirmed ltx.TXID) (known []ltx.FileInfo) {
	for _, f := range files {
		if usable(f) && f.Max <= confirmed {
			known = append(known, f)
		}
	}
	return known
}

// names are the level-0 files whose names must not become free.
type names struct {
	newest ltx.TXID
	claims ltx.TXID // claims from here on
	since  time.Time
}

func newNames(files []ltx.FileInfo, now time.Time) names {
	n := names{since: now.Add(-claimsFor)}
	var claims []ltx.TXID
	ends := map[ltx.TXID]bool{} // a claim there may be that of a base, not of a writer
	for _, f := range files {
		if f.IsSnapshot() {
			ends[f.Max] = true
		}
	}
	for _, f := range files {
		if f.Level == 0 {
			n.newest = max(n.newest, f.Max)
		}
		if isClaim(f) && !ends[f.Max] {
			claims = append(claims, f.Max)
		}
	}
	slices.Sort(claims)
	if first := len(claims) - claimsKept; first > 0 {
		n.claims = claims[first]
	}
	return n
}

func (n names) has(f ltx.FileInfo) bool {
	return f.Level == 0 && f.Max == n.newest || isClaim(f) && (f.Max >= n.claims || f.ModTime.After(n.since))
}

// cover tells which files others can stand in for. It need not know whether
// those go themselves: what stands in for them does so for the file too.
type cover struct {
	levels [ltx.LevelSnapshot + 1][]span
}

// span is a file by where it begins, and the furthest end of it and of all
// before it.
type span struct{ min, furthest ltx.TXID }

// newCover takes the increments and the snapshots of these ages.
func newCover(files []ltx.FileInfo, increments, snapshots time.Duration, now time.Time) *cover {
	c := &cover{}
	for _, f := range files {
		least := increments
		if f.IsSnapshot() {
			least = snapshots
		}
		if now.Sub(f.ModTime) >= least && !isClaim(f) && f.Level < len(c.levels) {
			c.levels[f.Level] = append(c.levels[f.Level], span{f.Min, f.Max})
		}
	}
	for _, spans := range c.levels {
		slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.min, b.min) })
		for i := 1; i < len(spans); i++ {
			spans[i].furthest = max(spans[i].furthest, spans[i-1].furthest)
		}
	}
	return c
}

// holds tells whether a file of a higher level, or one that holds more of the
// same level, holds all of f.
func (c *cover) holds(f ltx.FileInfo) bool {
	if c.furthest(f.Level, f.Min-1) >= f.Max || c.furthest(f.Level, f.Min) > f.Max {
		return true
	}
	for level := f.Level + 1; level < len(c.levels); level++ {
		if c.furthest(level, f.Min) >= f.Max {
			return true
		}
	}
	return false
}

// furthest is the furthest end of the files of a level that begin at most at
// TXID begin.
func (c *cover) furthest(level int, begin ltx.TXID) ltx.TXID {
	spans := c.levels[level]
	i, _ := slices.BinarySearchFunc(spans, begin, func(s span, t ltx.TXID) int {
		if s.min <= t {
			return -1
		}
		return 1
	})
	if i == 0 {
		return 0
	}
	return spans[i-1].furthest
}
