package replica

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/internal/scratch"
	"github.com/tidemark-io/tidemark/ltx"
)

// VerifyOptions says how to verify.
type VerifyOptions struct {
	// Scratch takes 12 bytes for each page of each file.
	Scratch *scratch.Space
	// Sums, empty at first, holds the page sums of the newest proven state
	// afterwards: 8 bytes a page.
	Sums *ltx.PageSums
	// Parallelism is the number of files read at a time, default 8. Each takes
	// some 2 MiB of memory.
	Parallelism int
	// Progress, if not nil, is told the bytes read and all to be read. Calls do
	// not overlap.
	Progress func(done, total int64)
}

// Fault is something wrong with a replica.
type Fault struct {
	Key      string   // of the file; empty: files are missing
	Min, Max ltx.TXID // transactions that it is about
	Problem  string
	Advice   string // what to do
}

// Verification is what Verify found.
type Verification struct {
	Files, Bytes int64
	States       int     // that can be restored
	First, Last  Point   // of them
	Proven       ltx.Pos // newest state that all files up to it were seen to lead to
	Faults       []Fault // empty: all is well
	Notes        []string
}

// Verify reads every file of a replica and proves it: each by its own checksum;
// that the pages of each, put on the state it follows, sum up to the checksum
// it leaves, in every level; that files agree on the checksum before and after
// each transaction; that nothing is missing on the way to the newest state. An
// error means that this could not be found out, or ErrNoBackup. Memory grows
// with the number of files, not with their size.
func Verify(ctx context.Context, r *Replica, o VerifyOptions) (Verification, error) {
	if o.Parallelism <= 0 {
		o.Parallelism = defaultJobs
	}
	records, err := o.Scratch.Create()
	if err != nil {
		return Verification{}, fmt.Errorf("verify %s: %w", r, err)
	}
	defer records.Close()
	v := &verifier{replica: r, options: o, records: records, proofs: map[string]*proof{}}
	if err = v.readAll(ctx); err == nil {
		err = v.judge(ctx)
	}
	if err != nil {
		return Verification{}, fmt.Errorf("verify %s: %w", r, err)
	}
	return v.result, nil
}

// proof is what is known of one file that was read.
type proof struct {
	ltx.FileInfo
	key     string
	header  ltx.Header
	post    ltx.Checksum
	xor     ltx.Checksum // of its pages' checksums
	records []extent     // its page numbers and checksums
	err     error        // it is damaged
	bad     bool         // it is damaged or does not fit
}

// bare tells whether the file only marks where a snapshot was written.
func (p *proof) bare() bool { return mayBeClaim(p.FileInfo) && p.header.NoChecksum() }

// judge looks at what was read.
func (v *verifier) judge(ctx context.Context) error {
	all := v.sorted()
	for _, p := range all {
		v.result.Files++
		v.result.Bytes += p.Size
		if p.err != nil {
			p.bad = true
			v.fault(p, p.err.Error(), adviceDamaged)
		}
	}
	sound := slices.DeleteFunc(slices.Clone(all), func(p *proof) bool { return p.bad })
	w := &walk{verifier: v, sums: v.options.Sums}
	if err := w.run(ctx, sound); err != nil {
		return err
	}
	v.compare(sound)
	v.holes(all)
	v.summarize(all)
	v.note(sound)
	return nil
}

const (
	adviceDamaged = "a restore goes around it where other files hold the same; delete it, or put it back from a copy of the bucket"
	adviceMisfit  = "keep a copy of both and delete the one of the higher level; if both are of level 0, a new snapshot makes later states safe"
	adviceMissing = "put the missing files back from a copy of the bucket; a new snapshot makes what comes after it restorable"
)

func (v *verifier) fault(p *proof, problem, advice string) {
	p.bad = true
	v.result.Faults = append(v.result.Faults, Fault{Key: p.key, Min: p.Min, Max: p.Max, Problem: problem, Advice: advice})
}

// sorted returns the proofs by level and TXIDs.
func (v *verifier) sorted() []*proof {
	var all []*proof
	for _, p := range v.proofs {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *proof) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Min, b.Min), cmp.Compare(a.Max, b.Max))
	})
	return all
}

// summarize says what can be restored.
func (v *verifier) summarize(all []*proof) {
	var usable []ltx.FileInfo
	times := map[ltx.TXID]time.Time{}
	for _, p := range slices.Backward(all) {
		if p.bad || p.bare() {
			continue
		}
		usable = append(usable, p.FileInfo)
		times[p.Max] = time.UnixMilli(p.header.Timestamp)
	}
	states := States(usable)
	if v.result.States = len(states); len(states) > 0 {
		first, last := states[0], states[len(states)-1]
		v.result.First, v.result.Last = Point{first, times[first]}, Point{last, times[last]}
	}
}
