package replica

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-io/tidemark/ltx"
)

// compare checks that files agree on the checksum of each state that several
// of them name. It sees also those that the walk could not reach.
func (v *verifier) compare(sound []*proof) {
	says := map[ltx.TXID]*proof{}
	for _, p := range sound { // the lowest level first
		if p.bad || p.post == 0 {
			continue
		}
		other := says[p.Max]
		if other == nil {
			says[p.Max] = p
		} else if other.post != p.post {
			v.fault(p, fmt.Sprintf("it leaves checksum %s at transaction %s, %s leaves %s", p.post, p.Max, other.key, other.post), adviceMisfit)
		}
	}
	for _, p := range sound {
		before := says[p.Min-1]
		if pre := p.header.PreApplyChecksum; !p.bad && pre != 0 && before != nil && before.post != pre {
			v.fault(p, fmt.Sprintf("it applies to checksum %s of transaction %s, %s leaves %s", pre, p.Min-1, before.key, before.post), adviceMisfit)
		}
	}
}

// span is a run of transactions.
type span struct{ min, max ltx.TXID }

func (s span) String() string {
	if s.min == s.max {
		return fmt.Sprintf("transaction %s", s.min)
	}
	return fmt.Sprintf("transactions %s to %s", s.min, s.max)
}

// holes finds transactions that no increment holds. Where a snapshot reaches
// over them, nothing newer is in danger.
func (v *verifier) holes(all []*proof) {
	newest, first, full := ltx.TXID(0), ltx.TXID(0), ltx.TXID(0)
	var steps []*proof
	for _, p := range all {
		newest = max(newest, p.Max)
		switch {
		case p.bad || p.bare():
		case p.IsSnapshot():
			full = max(full, p.Max)
			if first == 0 || p.Max < first {
				first = p.Max
			}
		default:
			steps = append(steps, p)
		}
	}
	if full == 0 {
		v.missing(span{1, newest}, "there is no sound file to start from: nothing can be restored")
		return
	}
	slices.SortFunc(steps, func(a, b *proof) int { return cmp.Compare(a.Min, b.Min) })
	reached := first
	for _, p := range append(steps, &proof{FileInfo: ltx.FileInfo{Min: newest + 1, Max: newest}}) {
		if gap := (span{reached + 1, p.Min - 1}); gap.min <= gap.max {
			if full >= gap.max {
				v.result.Notes = append(v.result.Notes, fmt.Sprintf("%s: only a snapshot holds what changed, so states within cannot be restored", gap))
			} else {
				v.missing(gap, "no sound file holds it: nothing newer can be restored")
			}
		}
		reached = max(reached, p.Max)
	}
}

func (v *verifier) missing(s span, problem string) {
	v.result.Faults = append(v.result.Faults, Fault{Min: s.min, Max: s.max, Problem: s.String() + ": " + problem, Advice: adviceMissing})
}

// note tells what is no fault.
func (v *verifier) note(sound []*proof) {
	plain, overlaps := 0, 0
	var example, last *proof
	for _, p := range sound {
		if p.post == 0 && !p.bare() {
			plain++
		}
		if p.IsSnapshot() || p.bare() {
			continue
		}
		if last != nil && last.Level == p.Level && p.Min <= last.Max {
			overlaps, example = overlaps+1, p
		}
		if last == nil || last.Level != p.Level || p.Max > last.Max {
			last = p
		}
	}
	if plain > 0 {
		v.noted("%d files carry no database checksums (Litestream writes none): they were compared with each other where they meet", plain)
	}
	if overlaps > 0 {
		v.noted("%d files overlap others of their level, which is harmless; the last is %s", overlaps, example.key)
	}
	if n := len(v.strange); n > 0 {
		shown := strings.Join(v.strange[:min(n, namesShown)], ", ")
		v.noted("%d objects are no files of a replica and were left alone: %s", n, shown)
	}
}

func (v *verifier) noted(format string, args ...any) {
	v.result.Notes = append(v.result.Notes, fmt.Sprintf(format, args...))
}
