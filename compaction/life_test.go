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

// life is a replica in simulated time: an application commits, and whoever
// compacts may crash after any single step and start again.
type life struct {
	t      *testing.T
	random *rand.Rand
	config compaction.Config
	now    time.Time
	files  []ltx.FileInfo
	tip    ltx.TXID

	commits []ltx.FileInfo // every level-0 file there ever was
	merged  []ltx.FileInfo // every file of level 1 and above there ever was
	made    int            // what was done, for the test to prove something
	deleted int
}

func newLife(t *testing.T, seed uint64) *life {
	l := &life{
		t: t, random: rand.New(rand.NewPCG(seed, 9)), now: noon(),
		config: compaction.Config{
			Levels:    compaction.Levels{{}, {1, 10 * time.Second}, {2, 60 * time.Second}, {3, 5 * time.Minute}},
			Snapshots: 10 * time.Minute,
			Retention: compaction.Retention{Level0: 40 * time.Second, Window: 12 * time.Minute},
			Slice:     compaction.Slice{Files: 7, Bytes: 1 << 40},
		},
	}
	if seed%3 == 0 {
		l.config.Retention.Window = 5 * time.Minute // shorter than from snapshot to snapshot
	}
	l.tip = 1
	l.add(9, 1, 1)
	return l
}

func (l *life) add(level int, minTXID, maxTXID ltx.TXID) {
	f := ltx.FileInfo{Level: level, Min: minTXID, Max: maxTXID, Size: 1000, ModTime: l.now}
	if level == 0 && l.random.IntN(40) == 0 {
		f.Size = claimSize
	}
	l.files = append(l.files, f)
	if level == 0 {
		l.commits = append(l.commits, f)
	} else {
		l.merged = append(l.merged, f)
	}
}

// step lets some time pass.
func (l *life) step() {
	switch l.random.IntN(60) {
	case 0:
		l.now = l.now.Add(time.Duration(l.random.IntN(900)) * time.Second) // down
	case 1:
		l.now = l.now.Add(time.Duration(l.random.IntN(60)) * time.Second) // idle
	default:
		l.now = l.now.Add(time.Duration(l.random.IntN(4000)) * time.Millisecond)
		for range l.random.IntN(4) {
			l.tip++
			l.add(0, l.tip, l.tip)
		}
	}
	l.compact()
	l.expire()
}

// compact does what is due, up to a crash.
func (l *life) compact() {
	jobs, holes := compaction.Due(l.files, l.config, l.confirmed(), l.now)
	if len(holes) > 0 {
		l.t.Fatalf("%v: there is no hole, got %v", l.files, holes)
	}
	for _, j := range jobs {
		if l.random.IntN(8) == 0 {
			return
		}
		l.made++
		if j.Snapshot() {
			l.add(9, 1, l.confirmed())
			continue
		}
		l.checkJob(j)
		l.add(j.Level, j.Target().Min, j.Target().Max)
	}
	if again, _ := compaction.Due(l.files, l.config, l.confirmed(), l.now); len(again) > 0 {
		l.t.Fatalf("%v: due again are %v", l.files, show(again, nil))
	}
}

// confirmed lags behind the tip now and then.
func (l *life) confirmed() ltx.TXID { return max(1, l.tip-ltx.TXID(l.now.Unix()%3)) }

func (l *life) checkJob(j compaction.Job) {
	pos := ltx.TXID(0)
	for i, f := range j.Sources {
		switch {
		case f.Min == 1 || f.Level >= j.Level || f.Max > l.confirmed():
			l.t.Fatalf("%v is no source of level %d", f, j.Level)
		case i > 0 && (f.Min > pos+1 || f.Max <= pos):
			l.t.Fatalf("%v steps over a hole", j)
		}
		pos = f.Max
	}
	if len(j.Sources) == 0 || len(j.Sources) > l.config.Slice.Files || pos != j.Target().Max {
		l.t.Fatalf("job of %d files: %v", len(j.Sources), j)
	}
	for _, f := range l.files {
		if f.Level == j.Level && f.Max >= j.Target().Max {
			l.t.Fatalf("%v is done by %v", j, f)
		}
	}
}

// expire deletes what has expired, one by one up to a crash.
func (l *life) expire() {
	expired := compaction.Expired(l.files, l.config.Retention, l.confirmed(), l.now)
	for _, f := range expired {
		l.checkDeletion(f)
	}
	l.random.Shuffle(len(expired), func(a, b int) { expired[a], expired[b] = expired[b], expired[a] })
	for _, f := range expired {
		if l.random.IntN(30) == 0 {
			return
		}
		i := slices.Index(l.files, f)
		l.files = slices.Delete(l.files, i, i+1)
		l.deleted++
	}
}

func (l *life) checkDeletion(f ltx.FileInfo) {
	r := l.config.Retention
	least := r.Window
	if f.Level == 0 {
		least = r.Level0
	}
	newest := l.commits[len(l.commits)-1]
	if l.now.Sub(f.ModTime) < least || f.Level == 0 && (f.Size == claimSize || f == newest) || f.Max > l.confirmed() {
		l.t.Fatalf("at %v %v must not go", l.now, f)
	}
}

// check holds every promise against what is there.
func (l *life) check() {
	if !slices.ContainsFunc(l.files, ltx.FileInfo.IsSnapshot) {
		l.t.Fatal("no snapshot is left")
	}
	plan := l.reach(0, 0)
	if at := plan[len(plan)-1].Max; at != l.tip {
		l.t.Fatalf("the newest state is %d, want %d", at, l.tip)
	}
	r := l.config.Retention
	for _, f := range since(l.commits, l.now.Add(-r.Level0)) {
		l.reach(0, f.Max)
	}
	// What ended before the window is no moment of it, however late it was
	// merged.
	begin := l.now.Add(-r.Window)
	for _, f := range since(l.merged, begin) {
		if f.Max >= l.stateAt(begin) {
			l.reach(0, f.Max)
		}
	}
	l.checkWindowBegin(begin)
	l.checkFollowers(begin)
}

// reach plans, which must work.
func (l *life) reach(from, target ltx.TXID) []ltx.FileInfo {
	l.t.Helper()
	plan, err := replica.Plan(l.files, from, target)
	if err != nil {
		l.t.Fatalf("at %v, from %d to %d: %v\n%s", l.now, from, target, err, names(l.files))
	}
	return plan
}

// since are the files, of those sorted by time, that are not older than t.
func since(files []ltx.FileInfo, t time.Time) []ltx.FileInfo {
	i, _ := slices.BinarySearchFunc(files, t, func(f ltx.FileInfo, t time.Time) int { return f.ModTime.Compare(t) })
	return files[i:]
}

// stateAt is the newest state there was at a time.
func (l *life) stateAt(t time.Time) ltx.TXID {
	later := since(l.commits, t.Add(1))
	if before := len(l.commits) - len(later); before > 0 {
		return l.commits[before-1].Max
	}
	return 1
}

// checkWindowBegin looks for a state that is not newer than the beginning of
// the window, and not older than the newest file of the highest level then.
func (l *life) checkWindowBegin(begin time.Time) {
	if begin.Before(noon()) {
		return
	}
	least, state := ltx.TXID(1), l.stateAt(begin)
	for _, f := range l.merged {
		if f.Level >= 3 && !f.ModTime.After(begin) {
			least = max(least, f.Max)
		}
	}
	for x := state; x >= least; x-- {
		if _, err := replica.Plan(l.files, 0, x); err == nil {
			return
		}
	}
	l.t.Fatalf("at %v no state from %d to %d can be reached\n%s", l.now, least, state, names(l.files))
}

// checkFollowers lets followers within the window go on.
func (l *life) checkFollowers(begin time.Time) {
	first := l.stateAt(begin)
	for range 5 {
		from := first + ltx.TXID(l.random.Uint64N(uint64(l.tip-first)+1))
		for _, f := range l.reach(from, 0) {
			if f.IsSnapshot() {
				l.t.Fatalf("at %v a follower at %d needs %v\n%s", l.now, from, f, names(l.files))
			}
		}
	}
}

func TestLivesKeepEveryPromise(t *testing.T) {
	for seed := range uint64(4) {
		l := newLife(t, seed)
		for i := range 1000 {
			l.step()
			if i%9 == 0 {
				l.check()
			}
		}
		if l.made < 200 || l.deleted < 1000 {
			t.Errorf("life %d made %d files and deleted %d: nothing is proven", seed, l.made, l.deleted)
		}
		// Some minutes of level 0 and 1, few of the others.
		if len(l.files) > 400 {
			t.Errorf("life %d has %d files at its end", seed, len(l.files))
		}
	}
}
