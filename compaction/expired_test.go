package compaction_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/ltx"
)

const (
	hour = 3600.0
	day  = 24 * hour
)

func names(files []ltx.FileInfo) string {
	var out []string
	for _, f := range files {
		out = append(out, name(f))
	}
	return strings.Join(out, " ")
}

func TestExpiredNeedsAFileThatStandsIn(t *testing.T) {
	retention := compaction.DefaultConfig().Retention // an hour, a day
	snapshots := []ltx.FileInfo{file(9, 1, 1, 0), file(9, 1, 50, day), file(9, 1, 90, 2*day)}
	for name, test := range map[string]struct {
		files     []ltx.FileInfo
		now       float64
		confirmed ltx.TXID
		want      string
	}{
		"nothing there":                      {nil, day, all, ""},
		"merged, but not an hour ago":        {with(raw(2, 5, 1), base(1), file(1, 2, 5, 30)), hour + 29, all, ""},
		"merged an hour ago, the newest not": {with(raw(2, 5, 1), base(1), file(1, 2, 5, 30)), hour + 30, all, "0:2-2 0:3-3 0:4-4"},
		"not merged":                         {with(raw(2, 5, 1), base(1)), 9 * day, all, ""},
		"merged but for the hole": {with(raw(1, 12, 1), file(1, 6, 12, 30), file(9, 1, 5, 40)), hour + 40, all,
			"0:6-6 0:7-7 0:8-8 0:9-9 0:10-10 0:11-11"},
		"two files hold it together":       {with(raw(2, 3, 1), base(1), file(0, 9, 9, 1), file(0, 4, 6, 4), file(1, 2, 4, 30), file(1, 5, 6, 60)), day, all, "0:2-2 0:3-3"},
		"the merged file is not confirmed": {with(raw(2, 7, 1), base(1), file(1, 2, 4, 30), file(1, 5, 6, 30)), day, 5, "0:2-2 0:3-3 0:4-4"},
		"the merged file has no bytes":     {with(raw(2, 7, 1), base(1), ltx.FileInfo{Level: 1, Min: 2, Max: 6, ModTime: noon()}), day, all, ""},
		"a snapshot within the window":     {with(raw(2, 5, 1), base(1), file(9, 1, 5, 30)), day, all, ""},
		"a snapshot older than the window": {with(raw(2, 5, 1), base(1), file(9, 1, 5, 30)), day + 30, all, "0:2-2 0:3-3 0:4-4 9:1-1"},
		"a claim": {with(raw(3, 5, 2), claim(2, 1), base(1), file(1, 2, 5, 30)), day, all,
			"0:3-3 0:4-4"},
		"level 1 within the window":                    {with(nil, base(1), file(1, 2, 5, 30), file(1, 6, 9, 60), file(2, 2, 9, 300)), day + 299, all, ""},
		"level 1 beyond the window":                    {with(nil, base(1), file(1, 2, 5, 30), file(1, 6, 9, 60), file(2, 2, 9, 300)), day + 300, all, "1:2-5 1:6-9"},
		"covered in the same level":                    {with(nil, base(1), file(1, 2, 10, 30), file(1, 5, 8, 60), file(1, 8, 15, 60)), day + 60, all, "1:5-8"},
		"snapshots in the window":                      {snapshots, 2*day - 1, all, ""},
		"one at its beginning":                         {snapshots, 2 * day, all, "9:1-1"},
		"the last one":                                 {snapshots, 9 * day, all, "9:1-1 9:1-50"},
		"the last one, not confirmed":                  {snapshots, 9 * day, 89, "9:1-1"},
		"level 1 with a base in it, within the window": {with(raw(1, 5, 1), file(1, 1, 5, 30)), day, all, ""},
	} {
		got := names(compaction.Expired(test.files, retention, test.confirmed, at(test.now)))
		if got != test.want {
			t.Errorf("%s: got %s\nwant %s", name, got, test.want)
		}
	}
}

func TestExternalRetentionDeletesNothing(t *testing.T) {
	r := compaction.DefaultConfig().Retention
	r.External = true
	if got := compaction.Expired(with(raw(2, 5, 1), base(1), file(1, 2, 5, 30)), r, all, at(9*day)); len(got) != 0 {
		t.Errorf("got %s", names(got))
	}
}

func TestClaimsGoOnceTheyAreManyAndOld(t *testing.T) {
	var files []ltx.FileInfo
	for txid := ltx.TXID(2); txid <= 40; txid++ {
		files = append(files, claim(txid, float64(txid-2)*day))
	}
	files = append(files, base(1), file(1, 2, 40, 38*day), file(0, 41, 41, 38*day))
	expired := compaction.Expired(files, compaction.DefaultConfig().Retention, all, at(60*day))
	// Of 39, the newest 16 stay.
	if len(expired) != 23 || expired[22].Max != 24 {
		t.Errorf("got %s", names(expired))
	}
	// Claims beside a snapshot may be those of bases, and push no others out.
	for txid := ltx.TXID(25); txid <= 36; txid++ {
		files = append(files, ltx.FileInfo{Level: 9, Min: 1, Max: txid, Size: 1000, ModTime: at(38 * day)})
	}
	expired = compaction.Expired(files, compaction.DefaultConfig().Retention, all, at(60*day))
	if slices.ContainsFunc(expired, func(f ltx.FileInfo) bool { return f.Size == claimSize && f.Max >= 13 }) {
		t.Errorf("got %s, want the claims of 16 writers kept", names(expired))
	}
	// Earlier there are none of which 16 are newer and a week is over.
	young := func(f ltx.FileInfo) bool { return at(39*day).Sub(f.ModTime) < 7*24*time.Hour }
	for _, f := range compaction.Expired(files, compaction.Retention{Level0: 1, Window: 1}, all, at(39*day)) {
		if young(f) && f.Size == claimSize {
			t.Errorf("%s is young", name(f))
		}
	}
	if !slices.ContainsFunc(files, young) {
		t.Error("none is young")
	}
}
