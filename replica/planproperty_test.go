package replica_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

// oracle finds the states that can be reached, and how many files each takes,
// by trying everything.
func oracle(files []ltx.FileInfo, from ltx.TXID) map[ltx.TXID]int {
	steps := map[ltx.TXID]int{from: 0}
	for changed := true; changed; {
		changed = false
		for _, f := range files {
			for at, n := range steps {
				known, ok := steps[f.Max]
				if f.Min <= at+1 && f.Max > at && (!ok || n+1 < known) {
					steps[f.Max], changed = n+1, true
				}
			}
		}
	}
	return steps
}

func randomFiles(r *rand.Rand) []ltx.FileInfo {
	files := make([]ltx.FileInfo, r.IntN(12))
	for i := range files {
		low := ltx.TXID(1 + r.IntN(14))
		if r.IntN(3) == 0 {
			low = 1
		}
		files[i] = file(r.IntN(10), low, low+ltx.TXID(r.IntN(1+r.IntN(8))))
	}
	return files
}

func TestPlanAgreesWithTryingEverything(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	reached, refused := 0, 0
	for range 20000 {
		files, from, target := randomFiles(r), ltx.TXID(r.IntN(4)*r.IntN(4)), ltx.TXID(r.IntN(20))
		before := slices.Clone(files)
		plan, err := replica.Plan(files, from, target)
		if !slices.Equal(files, before) {
			t.Fatalf("plan changed its input %v to %v", before, files)
		}
		if target == 0 {
			target = from
			for _, f := range files {
				target = max(target, f.Max)
			}
		}
		steps := oracle(files, from)
		n, can := steps[target]
		if len(files) == 0 && target != from || target == 0 {
			can = false
		}
		if can != (err == nil) {
			t.Fatalf("files %v from %d to %d: got %v, %v; reachable: %v", files, from, target, plan, err, can)
		}
		if can {
			reached++
			checkPlan(t, plan, files, [2]ltx.TXID{from, target}, n)
			continue
		}
		refused++
		checkUnreachable(t, err, steps, files, from)
	}
	if reached < 1000 || refused < 1000 {
		t.Errorf("%d plans and %d refusals: the cases are too one-sided", reached, refused)
	}
}

func checkPlan(t *testing.T, plan, files []ltx.FileInfo, way [2]ltx.TXID, fewest int) {
	t.Helper()
	at := way[0]
	snapshots := 0
	for _, f := range plan {
		if f.Min > at+1 || f.Max <= at || f.Max > way[1] || !slices.Contains(files, f) {
			t.Fatalf("plan %v of files %v: %v does not follow %d", plan, files, f, at)
		}
		if at = f.Max; f.IsSnapshot() {
			snapshots++
		}
	}
	if at != way[1] {
		t.Fatalf("plan %v ends at %d, want %d", plan, at, way[1])
	}
	if (way[0] == 0 || snapshots > 0) && len(plan) != fewest {
		t.Fatalf("plan %v of %v takes %d files, %d would do", plan, files, len(plan), fewest)
	}
}

func checkUnreachable(t *testing.T, err error, steps map[ltx.TXID]int, files []ltx.FileInfo, from ltx.TXID) {
	t.Helper()
	if errors.Is(err, replica.ErrNoBackup) && len(files) == 0 {
		return
	}
	var e *replica.UnreachableError
	if !errors.As(err, &e) {
		t.Fatalf("files %v from %d: got %v", files, from, err)
	}
	var earlier, later ltx.TXID
	for at := range steps {
		if at < e.Target && at != from {
			earlier = max(earlier, at)
		}
		if at > e.Target && (later == 0 || at < later) {
			later = at
		}
	}
	if e.Earlier != earlier || e.Later != later {
		t.Fatalf("files %v from %d: got %+v, want earlier %d, later %d", files, from, *e, earlier, later)
	}
	for _, f := range files {
		if _, usable := steps[f.Max]; e.Missing != 0 && usable && f.Min <= e.Missing && e.Missing <= f.Max {
			t.Fatalf("files %v from %d: %+v, but %v holds what is missing", files, from, *e, f)
		}
	}
}
