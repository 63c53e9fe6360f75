package compaction_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

// randomFiles is any inventory at all: with holes, overlaps, claims and ages
// that no life brings about.
func randomFiles(r *rand.Rand) (files []ltx.FileInfo) {
	type key struct {
		level    int
		min, max ltx.TXID
	}
	seen := map[key]bool{}
	for range r.IntN(30) {
		level, low := r.IntN(5), ltx.TXID(1+r.IntN(15))
		high := low
		switch level {
		case 0:
		case 4:
			level, low, high = 9, 1, low+ltx.TXID(r.IntN(5))
		default:
			high += ltx.TXID(r.IntN(2 + 3*level))
		}
		if seen[key{level, low, high}] {
			continue
		}
		seen[key{level, low, high}] = true
		f := file(level, low, high, -float64(r.IntN(100)))
		if r.IntN(10) == 0 && level == 0 {
			f.Size = claimSize
		}
		files = append(files, f)
	}
	return files
}

func reachable(files []ltx.FileInfo, from, target ltx.TXID) bool {
	_, err := replica.Plan(files, from, target)
	return err == nil
}

func filter(files []ltx.FileInfo, keep func(ltx.FileInfo) bool) []ltx.FileInfo {
	return slices.DeleteFunc(slices.Clone(files), func(f ltx.FileInfo) bool { return !keep(f) })
}

// reach is the highest TXID of the files of an age.
func reach(files []ltx.FileInfo, age time.Duration) (high ltx.TXID) {
	for _, f := range files {
		if noon().Sub(f.ModTime) >= age {
			high = max(high, f.Max)
		}
	}
	return high
}

func TestExpiredTakesNothingAwayFromAnyInventory(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	deleted := 0
	retention := compaction.Retention{Level0: 20 * time.Second, Window: 60 * time.Second}
	increment := func(f ltx.FileInfo) bool { return !f.IsSnapshot() }
	merged := func(f ltx.FileInfo) bool { return f.Level > 0 || f.IsSnapshot() }
	for range 400 {
		files := randomFiles(random)
		before := slices.Clone(files)
		expired := compaction.Expired(files, retention, all, noon())
		if !slices.Equal(files, before) {
			t.Fatalf("%v changed to %v", before, files)
		}
		deleted += len(expired)
		kept := filter(files, func(f ltx.FileInfo) bool { return !slices.Contains(expired, f) })
		// A state that no file of the age reaches beyond is one of the time
		// since then. From 0 it is restored, from elsewhere it is followed.
		for target := ltx.TXID(1); target <= 20; target++ {
			for from := range target {
				if target >= reach(files, retention.Level0) && reachable(files, from, target) && !reachable(kept, from, target) {
					t.Fatalf("%d is lost from %d: %s without %s", target, from, names(files), names(expired))
				}
				if target >= reach(files, retention.Window) &&
					reachable(filter(files, merged), from, target) && !reachable(kept, from, target) {
					t.Fatalf("%d is lost from %d for levels above 0: %s without %s", target, from, names(files), names(expired))
				}
				if from >= reach(files, retention.Window) && target >= reach(files, retention.Level0) &&
					reachable(filter(files, increment), from, target) && !reachable(filter(kept, increment), from, target) {
					t.Fatalf("%d needs a snapshot from %d: %s without %s", target, from, names(files), names(expired))
				}
			}
		}
	}
	if deleted < 200 {
		t.Errorf("%d deleted: nothing is proven", deleted)
	}
}

func TestDueMakesGoodFilesOfAnyInventory(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	c := compaction.DefaultConfig()
	c.Levels = compaction.Levels{{}, {1, 5 * time.Second}, {2, 20 * time.Second}, {3, 40 * time.Second}}
	made, stopped := 0, 0
	for range 40000 {
		files, confirmed := randomFiles(random), ltx.TXID(random.IntN(22))
		jobs, holes := compaction.Due(files, c, confirmed, noon())
		for _, h := range holes {
			stopped++
			checkHole(t, files, h)
		}
		// Each round gets further, until nothing is left to do.
		for round := 0; slices.ContainsFunc(jobs, isMerge); round++ {
			if round == 20 {
				t.Fatalf("files %s: still due are %s", names(files), show(jobs, holes))
			}
			for _, j := range filterJobs(jobs) {
				made++
				files = append(files, checkMerge(t, files, j, confirmed))
			}
			jobs, holes = compaction.Due(files, c, confirmed, noon())
		}
	}
	if made < 2000 || stopped < 500 {
		t.Errorf("%d files and %d holes: nothing is proven", made, stopped)
	}
}

func isMerge(j compaction.Job) bool { return !j.Snapshot() }

func filterJobs(jobs []compaction.Job) []compaction.Job {
	return slices.DeleteFunc(jobs, compaction.Job.Snapshot)
}

func checkHole(t *testing.T, files []ltx.FileInfo, h compaction.Hole) {
	t.Helper()
	for _, f := range files {
		if f.Max >= h.Min && f.Min <= h.Max && !f.IsSnapshot() && f.Level == h.Level-1 && f.Size != claimSize {
			t.Fatalf("files %s: %v is no hole", names(files), h)
		}
	}
}

// checkMerge returns the file that the job makes.
func checkMerge(t *testing.T, files []ltx.FileInfo, j compaction.Job, confirmed ltx.TXID) ltx.FileInfo {
	t.Helper()
	pos := j.Sources[0].Min - 1
	for _, f := range j.Sources {
		if f.Min-1 > pos || f.Max <= pos || f.Min == 1 || f.Max > confirmed || !slices.Contains(files, f) {
			t.Fatalf("files %s: got %s", names(files), show([]compaction.Job{j}, nil))
		}
		pos = f.Max
	}
	target := j.Target()
	for _, f := range files {
		if f.Level == j.Level && f.Max >= target.Max {
			t.Fatalf("files %s: %s is there when %s is made", names(files), name(f), name(target))
		}
	}
	target.ModTime, target.Size = noon(), 1000
	return target
}
