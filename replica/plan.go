package replica

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
)

// timeForm shows times as precisely as files carry them.
const timeForm = "2006-01-02T15:04:05.000Z07:00"

// ErrUnreachable is wrapped by UnreachableError.
var ErrUnreachable = errors.New("state cannot be reached")

// UnreachableError says that the files do not lead to a state, and what lies
// around it.
type UnreachableError struct {
	Target  ltx.TXID
	Missing ltx.TXID // the first TXID no usable file holds; 0: all are there, but no file ends at Target
	Earlier ltx.TXID // nearest state before Target that can be reached; 0: none
	Later   ltx.TXID // nearest state after it; 0: none
	// When Earlier and Later were committed; zero: not known.
	EarlierTime, LaterTime time.Time
}

// Error names the target, the reason and the way out.
func (e *UnreachableError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "transaction %s: %v: ", e.Target, ErrUnreachable)
	switch {
	case e.Missing == 1:
		b.WriteString("no snapshot to start from")
	case e.Missing != 0:
		fmt.Fprintf(&b, "transaction %s is missing", e.Missing)
	case e.Later == 0:
		b.WriteString("it is newer than all files")
	default:
		b.WriteString("no file ends there")
	}
	fmt.Fprintf(&b, "; nearest earlier state: %s, nearest later: %s", orNone(e.Earlier, e.EarlierTime), orNone(e.Later, e.LaterTime))
	return b.String()
}

// Unwrap makes errors.Is(err, ErrUnreachable) true.
func (e *UnreachableError) Unwrap() error { return ErrUnreachable }

func orNone(t ltx.TXID, at time.Time) string {
	switch {
	case t == 0:
		return "none"
	case at.IsZero():
		return t.String()
	}
	return fmt.Sprintf("%s of %s", t, at.Format(timeForm))
}

// Plan chooses the files that lead from one state to another, in the order of
// application. From 0 is the empty database, target 0 the newest state of all
// files. Files overlap freely: pages are absolute, so whatever begins at or
// before the next TXID may be applied. Of those the one that reaches furthest
// is taken, which needs the fewest files and reaches whatever can be reached.
// From a state that is there already, snapshots are used only where increments
// leave a hole.
//
// The plan ends exactly at the target or there is an UnreachableError: an older
// state never passes for the newest. Without files it is ErrNoBackup, unless
// from is already at the target.
func Plan(files []ltx.FileInfo, from, target ltx.TXID) ([]ltx.FileInfo, error) {
	if target == 0 {
		target = max(from, newestOf(files))
	}
	switch {
	case target == from && from > 0:
		return nil, nil
	case len(files) == 0:
		return nil, ErrNoBackup
	case target < from:
		return nil, &UnreachableError{Target: target, Later: from}
	}
	ordered := order(files, target)
	if from > 0 {
		increments := slices.DeleteFunc(slices.Clone(ordered), ltx.FileInfo.IsSnapshot)
		if plan, reached := chain(increments, from, target); reached == target {
			return plan, nil
		}
	}
	plan, reached := chain(ordered, from, target)
	if reached == target {
		return plan, nil
	}
	return nil, unreachable(files, from, target)
}

// mayBeClaim tells whether a file has no pages: it claims a TXID.
func mayBeClaim(f ltx.FileInfo) bool {
	return f.Level == 0 && f.Size == ltx.MinFileSize && !f.IsSnapshot()
}

func newestOf(files []ltx.FileInfo) (newest ltx.TXID) {
	for _, f := range files {
		newest = max(newest, f.Max)
	}
	return newest
}

// order returns the files that end at or before target by what they begin
// with; of two that are equally good the preferred one comes last. Claims beside
// a snapshot say nothing of what changed there, so they lead nowhere.
func order(files []ltx.FileInfo, target ltx.TXID) []ltx.FileInfo {
	full := map[ltx.TXID]bool{}
	for _, f := range files {
		if f.IsSnapshot() {
			full[f.Max] = true
		}
	}
	ordered := slices.DeleteFunc(slices.Clone(files), func(f ltx.FileInfo) bool {
		return f.Max > target || f.Min == 0 || f.Min > f.Max || mayBeClaim(f) && full[f.Max]
	})
	slices.SortFunc(ordered, func(a, b ltx.FileInfo) int {
		return cmp.Or(cmp.Compare(a.Min, b.Min), cmp.Compare(a.Max, b.Max), cmp.Compare(a.Level, b.Level))
	})
	return ordered
}

// chain walks from a position by the furthest-reaching file each time. No
// other choice gets further: every file that can follow a position can follow
// any later one that it still extends.
func chain(ordered []ltx.FileInfo, from, target ltx.TXID) (plan []ltx.FileInfo, reached ltx.TXID) {
	reached = from
	next := 0
	for reached < target {
		var best ltx.FileInfo
		for ; next < len(ordered) && ordered[next].Min-1 <= reached; next++ {
			if ordered[next].Max >= best.Max {
				best = ordered[next]
			}
		}
		if best.Max <= reached {
			break
		}
		plan, reached = append(plan, best), best.Max
	}
	return plan, reached
}

// unreachable explains why no chain ends at target.
func unreachable(files []ltx.FileInfo, from, target ltx.TXID) error {
	e := &UnreachableError{Target: target}
	newest, covered := from, from
	for _, f := range order(files, ^ltx.TXID(0)) {
		newest = max(newest, f.Max)
		if f.Min-1 <= covered {
			covered = max(covered, f.Max)
		}
	}
	reached := from
	for _, f := range byMax(files) {
		if f.Max <= reached || f.Min-1 > reached {
			continue
		}
		if reached = f.Max; reached > target {
			e.Later = reached
			break
		}
		e.Earlier = reached
	}
	if covered < min(target, newest) {
		e.Missing = covered + 1
	}
	return e
}
