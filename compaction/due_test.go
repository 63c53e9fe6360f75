package compaction_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/ltx"
)

const (
	all       = ^ltx.TXID(0) // everything is confirmed
	claimSize = 131
)

// noon is at a border of all buckets shorter than half a day.
func noon() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

// at is a time given in seconds from noon.
func at(seconds float64) time.Time {
	return noon().Add(time.Duration(seconds * float64(time.Second)))
}

func file(level int, minTXID, maxTXID ltx.TXID, uploaded float64) ltx.FileInfo {
	return ltx.FileInfo{Level: level, Min: minTXID, Max: maxTXID, Size: 1000, ModTime: at(uploaded)}
}

func claim(txid ltx.TXID, uploaded float64) ltx.FileInfo {
	f := file(0, txid, txid, uploaded)
	f.Size = claimSize
	return f
}

// raw are files of level 0, one a second from the given one.
func raw(first, last ltx.TXID, from float64) (files []ltx.FileInfo) {
	for t := first; t <= last; t++ {
		files = append(files, file(0, t, t, from+float64(t-first)))
	}
	return files
}

func base(maxTXID ltx.TXID) ltx.FileInfo { return file(9, 1, maxTXID, 0) }

func with(files []ltx.FileInfo, more ...ltx.FileInfo) []ltx.FileInfo {
	return append(slices.Clone(files), more...)
}

func without(files []ltx.FileInfo, txids ...ltx.TXID) []ltx.FileInfo {
	return slices.DeleteFunc(slices.Clone(files), func(f ltx.FileInfo) bool {
		return f.Level == 0 && slices.Contains(txids, f.Min)
	})
}

// name is level:min-max.
func name(f ltx.FileInfo) string { return fmt.Sprintf("%d:%d-%d", f.Level, f.Min, f.Max) }

// show writes jobs as level(sources), and holes.
func show(jobs []compaction.Job, holes []compaction.Hole) string {
	var out []string
	for _, j := range jobs {
		var sources []string
		for _, s := range j.Sources {
			sources = append(sources, name(s))
		}
		if n := len(sources); n > 3 {
			sources = []string{sources[0], "..", sources[n-1]}
		}
		out = append(out, fmt.Sprintf("%d(%s)", j.Level, strings.Join(sources, " ")))
	}
	for _, h := range holes {
		out = append(out, fmt.Sprintf("hole %d-%d below %d", h.Min, h.Max, h.Level))
	}
	return strings.Join(out, " ")
}

func TestDueFollowsTheBucketsAndNeverAHole(t *testing.T) {
	for name, test := range map[string]struct {
		files     []ltx.FileInfo
		now       float64
		confirmed ltx.TXID
		want      string
	}{
		"nothing there":                  {nil, 60, all, ""},
		"the base alone":                 {with(nil, base(1)), 1e5, all, ""},
		"bucket not over":                {with(raw(2, 9, 1), base(1)), 29, all, ""},
		"bucket over":                    {with(raw(2, 9, 1), base(1)), 30, all, "1(0:2-2 .. 0:9-9)"},
		"the same long after":            {with(raw(2, 9, 1), base(1)), 3000, all, "1(0:2-2 .. 0:9-9)"},
		"done already":                   {with(raw(2, 9, 1), base(1), file(1, 2, 9, 30)), 60, all, ""},
		"two buckets missed":             {with(raw(2, 41, 1), base(1)), 90, all, "1(0:2-2 .. 0:30-30) 1(0:31-31 .. 0:41-41)"},
		"not confirmed":                  {with(raw(2, 9, 1), base(1)), 30, 8, ""},
		"one bucket confirmed":           {with(raw(2, 41, 1), base(1)), 90, 35, "1(0:2-2 .. 0:30-30)"},
		"no base yet":                    {raw(2, 9, 1), 30, all, "9()"},
		"base of litestream":             {raw(1, 9, 1), 30, all, "1(0:2-2 .. 0:9-9)"},
		"its level 1 holds the base":     {with(raw(1, 9, 1), file(1, 1, 5, 5)), 30, all, "1(0:6-6 .. 0:9-9)"},
		"snapshot in the middle":         {with(raw(2, 9, 1), base(1), base(6)), 30, all, "1(0:2-2 .. 0:9-9)"},
		"base instead of a file":         {with(without(raw(2, 9, 1), 6), base(1), base(6), claim(6, 4)), 30, all, "1(0:2-2 .. 0:5-5) 1(0:7-7 0:8-8 0:9-9)"},
		"claim of a new writer":          {with(without(raw(2, 9, 1), 6), base(1), claim(6, 4)), 30, all, "1(0:2-2 .. 0:9-9)"},
		"hole":                           {with(without(raw(2, 9, 1), 5, 6), base(1)), 30, all, "1(0:2-2 0:3-3 0:4-4) hole 5-6 below 1"},
		"hole at the next TXID":          {with(without(raw(2, 20, 1), 11), base(1), file(1, 2, 10, 9)), 30, all, "hole 11-11 below 1"},
		"hole not confirmed behind":      {with(without(raw(2, 9, 1), 5), base(1)), 30, 4, "1(0:2-2 0:3-3 0:4-4)"},
		"object of no bytes is a hole":   {with(without(raw(2, 9, 1), 5), base(1), ltx.FileInfo{Min: 5, Max: 5, ModTime: noon()}), 30, all, "1(0:2-2 0:3-3 0:4-4) hole 5-5 below 1"},
		"snapshot over the hole":         {with(without(raw(2, 9, 1), 5), base(1), base(7)), 30, all, "1(0:2-2 0:3-3 0:4-4) 1(0:8-8 0:9-9)"},
		"snapshot over the hole and all": {with(without(raw(2, 9, 1), 5), base(1), base(9)), 30, all, "1(0:2-2 0:3-3 0:4-4)"},
		"snapshot not confirmed":         {with(without(raw(2, 9, 1), 5), base(1), base(7)), 30, 6, "1(0:2-2 0:3-3 0:4-4) hole 5-5 below 1"},
		"second hole behind a snapshot":  {with(without(raw(2, 20, 1), 5, 15), base(1), base(7)), 30, all, "1(0:2-2 0:3-3 0:4-4) 1(0:8-8 .. 0:14-14) hole 15-15 below 1"},
		"level 2": {[]ltx.FileInfo{base(1), file(1, 2, 5, 31), file(1, 6, 9, 61)}, 300, all,
			"2(1:2-5 1:6-9)"},
		"level 2 not over": {[]ltx.FileInfo{base(1), file(1, 2, 5, 31), file(1, 6, 9, 61)}, 299, all, ""},
		"overlaps: covered ones skipped, the longer taken": {
			[]ltx.FileInfo{base(1), file(1, 2, 10, 31), file(1, 5, 8, 32), file(1, 8, 15, 33), file(1, 11, 20, 34)}, 300, all,
			"2(1:2-10 1:11-20)"},
		"overlap with what is done": {[]ltx.FileInfo{base(1), file(2, 2, 8, 1), file(1, 5, 12, 31)}, 300, all, "2(1:5-12)"},
		"gap in level 1 filled from level 0": {
			with(raw(6, 9, 40), base(1), file(1, 2, 5, 31), file(1, 10, 12, 61)), 300, all, "2(1:2-5 .. 1:10-12)"},
		"gap in level 1 that nothing fills": {
			[]ltx.FileInfo{base(1), file(1, 2, 5, 31), file(1, 10, 12, 61)}, 300, all, "2(1:2-5) hole 6-9 below 2"},
		"level 2 is not made of level 0 beyond level 1": {
			with(raw(10, 12, 1), base(1), file(1, 2, 9, 31)), 300, all, "1(0:10-10 0:11-11 0:12-12) 2(1:2-9)"},
		"only leftovers below an old snapshot": {[]ltx.FileInfo{claim(30, 1), file(0, 50, 50, 2), base(50)}, 300, all, ""},
		"old claims do not start a level":      {with(raw(51, 53, 5), claim(30, 1), base(50)), 30, all, "1(0:51-51 0:52-52 0:53-53)"},
		"file uploaded late keeps the order":   {with(without(raw(2, 9, 1), 5), file(0, 5, 5, 65), base(1)), 60, all, "1(0:2-2 0:3-3 0:4-4)"},
	} {
		jobs, holes := compaction.Due(test.files, compaction.DefaultConfig(), test.confirmed, at(test.now))
		if got := show(jobs, holes); got != test.want {
			t.Errorf("%s: got %s\nwant %s", name, got, test.want)
		}
	}
}

func TestASnapshotIsDueOnceABucketAndOnlyForChanges(t *testing.T) {
	midnight := 12 * time.Hour.Seconds()
	old := file(9, 1, 5, 0)
	for name, test := range map[string]struct {
		files []ltx.FileInfo
		now   float64
		want  bool
	}{
		"nothing there":               {nil, midnight, false},
		"nothing new":                 {with(raw(2, 5, 1), old), midnight, false},
		"new, the bucket not over":    {with(raw(2, 6, 1), old), midnight - 1, false},
		"new, the bucket over":        {with(raw(2, 6, 1), old), midnight, true},
		"a bucket later":              {with(raw(2, 6, 1), old), 9 * midnight, true},
		"done in this bucket":         {with(raw(2, 7, 1), old, file(9, 1, 6, midnight+1)), midnight + 100, false},
		"a claim changes nothing":     {with(raw(2, 5, 1), old, claim(6, 6)), midnight, false},
		"none there, only increments": {raw(2, 5, 1), 10, true},
	} {
		jobs, _ := compaction.Due(test.files, compaction.DefaultConfig(), all, at(test.now))
		got := slices.ContainsFunc(jobs, compaction.Job.Snapshot)
		if got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestABacklogIsCutIntoSlices(t *testing.T) {
	c := compaction.DefaultConfig()
	c.Slice = compaction.Slice{Files: 4, Bytes: 3500}
	files := with(raw(2, 11, 1), base(1))
	files[8].Size = 10000 // of TXID 10
	jobs, holes := compaction.Due(files, c, all, at(30))
	want := "1(0:2-2 0:3-3 0:4-4) 1(0:5-5 0:6-6 0:7-7) 1(0:8-8 0:9-9) 1(0:10-10) 1(0:11-11)"
	if got := show(jobs, holes); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	c.Slice.Bytes = 1e6
	jobs, _ = compaction.Due(files, c, all, at(30))
	if got, want := show(jobs, nil), "1(0:2-2 .. 0:5-5) 1(0:6-6 .. 0:9-9) 1(0:10-10 0:11-11)"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestSettingsThatWereNotCheckedDoNoHarm(t *testing.T) {
	files := with(raw(2, 9, 1), base(1))
	if jobs, holes := compaction.Due(files, compaction.Config{}, all, at(30)); len(filterJobs(jobs)) != 0 || len(holes) != 0 {
		t.Errorf("got %s", show(jobs, holes))
	}
	if expired := compaction.Expired(nil, compaction.Retention{}, 0, noon()); len(expired) != 0 {
		t.Errorf("got %s", names(expired))
	}
}
