package compaction

import (
	"cmp"
	"slices"

	"github.com/tidemark-io/tidemark/ltx"
)

// sort keeps what a level can be made of. The claim at the end of a base says
// nothing of the pages that changed there, so it is no step from what was
// before it.
func (s *survey) sort(files []ltx.FileInfo) {
	ends := map[ltx.TXID]bool{}
	for _, f := range files {
		if usable(f) && f.IsSnapshot() {
			ends[f.Max] = true
			if f.Max <= s.confirmed {
				s.snapshots = append(s.snapshots, f.Max)
			}
		}
	}
	slices.Sort(s.snapshots)
	for _, f := range files {
		if usable(f) && !(isClaim(f) && ends[f.Max]) {
			s.files = append(s.files, f)
		}
	}
	slices.SortFunc(s.files, func(a, b ltx.FileInfo) int {
		return cmp.Or(cmp.Compare(a.Min, b.Min), cmp.Compare(a.Max, b.Max), cmp.Compare(a.Level, b.Level))
	})
}

// reached is the TXID up to which a level is made.
func (s *survey) reached(level int) ltx.TXID {
	if high := s.highest(level); high > 0 || len(s.snapshots) == 0 {
		return high
	}
	return s.snapshots[0]
}

// highest is the highest TXID of a level and those above it, the snapshots'
// and what stands in for one above the levels excepted.
func (s *survey) highest(level int) (high ltx.TXID) {
	for _, f := range s.files {
		standIn := f.IsSnapshot() && f.Level >= len(s.config.Levels)
		if f.Level >= level && f.Level < ltx.LevelSnapshot && !standIn {
			high = max(high, f.Max)
		}
	}
	return high
}

// sources are the files that a level may be made of: those of the level below
// it and, behind them, those still lower that may fill gaps between them.
func (s *survey) sources(level int) [2]extender {
	var out [2]extender
	high := s.highest(level - 1)
	for _, f := range s.files {
		switch {
		case f.IsSnapshot() || f.Level >= level:
		case f.Level == level-1:
			out[0].add(f)
		case f.Max <= high:
			out[1].add(f)
		}
	}
	return out
}

// extender finds, from ascending positions, the file that reaches furthest.
type extender struct {
	files   []ltx.FileInfo // sorted by Min
	highest ltx.TXID       // of all of them
	next    int
	best    ltx.FileInfo
}

func (e *extender) add(f ltx.FileInfo) {
	e.files = append(e.files, f)
	e.highest = max(e.highest, f.Max)
}

// from returns the file that follows pos. Of those that reach equally far it
// is the one that repeats the least.
func (e *extender) from(pos ltx.TXID) (ltx.FileInfo, bool) {
	for ; e.next < len(e.files) && e.files[e.next].Min-1 <= pos; e.next++ {
		if e.files[e.next].Max >= e.best.Max {
			e.best = e.files[e.next]
		}
	}
	return e.best, e.best.Max > pos
}

// walk goes from where a level ends along its sources.
type walk struct {
	*survey
	level   int
	sources [2]extender
	pos     ltx.TXID
}

// step returns the next source. Before a hole it goes on behind it where a
// snapshot reaches over it; else it notes the hole and ends.
func (w *walk) step() (ltx.FileInfo, bool) {
	for bridge := 0; w.beyond(); bridge++ {
		for i := range w.sources {
			if f, ok := w.sources[i].from(w.pos); ok {
				w.pos = f.Max
				return f, true
			}
		}
		next, found := slices.BinarySearch(w.snapshots, w.pos+1)
		if !found && next == len(w.snapshots) {
			w.hole()
			break
		}
		w.pos = w.snapshots[next]
	}
	return ltx.FileInfo{}, false
}

// beyond tells whether any source ends behind the position.
func (w *walk) beyond() bool {
	return w.sources[0].highest > w.pos || w.sources[1].highest > w.pos
}

// hole notes what is missing before the next source.
func (w *walk) hole() {
	var first ltx.FileInfo
	for _, e := range w.sources {
		if e.next < len(e.files) && (first.Min == 0 || e.files[e.next].Min < first.Min) {
			first = e.files[e.next]
		}
	}
	if first.Min > 0 && first.Max <= w.confirmed {
		w.holes = append(w.holes, Hole{Level: w.level, Min: w.pos + 1, Max: first.Min - 1})
	}
}
