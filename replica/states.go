package replica

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
)

// Point is a state and when it was committed.
type Point struct {
	TXID ltx.TXID // 0: there is none
	Time time.Time
}

// States returns the TXIDs that Plan can reach from nothing, ascending: what
// can be restored.
func States(files []ltx.FileInfo) []ltx.TXID {
	var states []ltx.TXID
	reached := ltx.TXID(0)
	for _, f := range byMax(files) {
		if f.Max > reached && f.Min-1 <= reached {
			reached = f.Max
			states = append(states, reached)
		}
	}
	return states
}

// byMax returns the files that can be a step of a plan by where they end.
func byMax(files []ltx.FileInfo) []ltx.FileInfo {
	sorted := order(files, ^ltx.TXID(0))
	slices.SortStableFunc(sorted, func(a, b ltx.FileInfo) int { return cmp.Compare(a.Max, b.Max) })
	return sorted
}

// borders returns, for each TXID at which a file ends, ascending, the file that
// tells best when that was committed: the lowest level first, and snapshots
// last, which may carry the time when they were made.
func borders(files []ltx.FileInfo) []ltx.FileInfo {
	sorted := slices.Clone(files)
	slices.SortFunc(sorted, func(a, b ltx.FileInfo) int {
		return cmp.Or(cmp.Compare(a.Max, b.Max), cmp.Compare(rank(a), rank(b)))
	})
	return slices.CompactFunc(sorted, func(a, b ltx.FileInfo) bool { return a.Max == b.Max })
}

// rank orders files by how well they tell the time of their last commit.
func rank(f ltx.FileInfo) int {
	if f.IsSnapshot() {
		return levels + f.Level
	}
	return f.Level
}

// errUntold is returned for a file whose time cannot be told.
var errUntold = errors.New("time cannot be told")

// searchTime returns the TXID of the last state committed at or before t, 0 if
// there is none, asking for the time of a number of files that grows with the
// logarithm of theirs. Files whose time is errUntold are passed over. Where
// clocks were set back the answer is still not newer than t, but there may be
// a better one.
func searchTime(files []ltx.FileInfo, t time.Time, timeOf func(ltx.FileInfo) (time.Time, error)) (ltx.TXID, error) {
	all := borders(files)
	increments := slices.DeleteFunc(slices.Clone(all), ltx.FileInfo.IsSnapshot)
	i, err := lastBefore(increments, t, timeOf)
	if err != nil {
		return 0, err
	}
	found := ltx.TXID(0)
	if i >= 0 {
		found = increments[i].Max
	}
	// A snapshot of another program may carry a later time than the increments
	// after it, so snapshots decide only about what is beyond those.
	beyond := slices.DeleteFunc(all, func(f ltx.FileInfo) bool { return !f.IsSnapshot() || f.Max <= found })
	if i, err = lastBefore(beyond, t, timeOf); err == nil && i >= 0 {
		found = beyond[i].Max
	}
	return found, err
}

// lastBefore returns the index of the last file that is not newer than t, -1
// if there is none.
func lastBefore(files []ltx.FileInfo, t time.Time, timeOf func(ltx.FileInfo) (time.Time, error)) (int, error) {
	low, high, found := 0, len(files), -1
	for low < high {
		mid := (low + high) / 2
		at, told := mid, time.Time{}
		for ; at < high; at++ {
			var err error
			if told, err = timeOf(files[at]); err == nil {
				break
			} else if !errors.Is(err, errUntold) {
				return -1, err
			}
		}
		switch {
		case at == high:
			high = mid // nothing above tells
		case told.After(t):
			high = mid
		default:
			found, low = at, at+1
		}
	}
	return found, nil
}
