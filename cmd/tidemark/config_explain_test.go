package main

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestUploadsOfAMonthAreBounded(t *testing.T) {
	for _, c := range []struct {
		every   time.Duration
		commits int64
		want    int64
	}{
		{0, 0, 30 * 86_400 * 20},
		{time.Millisecond, 0, 30 * 86_400 * 20}, // one in flight is the tighter bound
		{time.Second, 0, 30 * 86_400},
		{10 * time.Second, 0, 30 * 8_640},
		{24 * time.Hour, 0, 30},
		{0, 100, 3_000},
		{time.Hour, 100, 720},
		{time.Hour, 3, 90},
		{0, math.MaxInt64 / 30, 30 * 86_400 * 20},
	} {
		if got := uploads(c.every, c.commits); got != c.want {
			t.Errorf("%s with %d commits a day: got %d, want %d", c.every, c.commits, got, c.want)
		}
	}
}

func TestExplanationAddsUp(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		if err := testdb.Create(t, filepath.Join(dir, fmt.Sprint(i, ".db")), testdb.Options{}).Close(); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := parseConfig(fmt.Appendf(nil, `
sync-interval: 1m
levels: []
snapshot: {interval: 24h}
retention: external
region: us-east-1
dbs:
  - {path: /a, replica: {url: "s3://one/a", sync-interval: 1s}}
  - {path: /b, replica: {url: "s3://one/b"}}
  - {path: /c, replica: {url: "s3://two/c"}}
  - {path: /d, replica: {url: "file:///d"}}
  - {dir: %s, pattern: "*.db", replica: {url: "s3://two/e"}}
`, dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	x, err := explain(cfg, 0)
	if err != nil {
		t.Fatal(err)
	}
	const minutes = 30 * 1440
	for i, want := range []int64{60 * minutes, minutes, minutes, 0, 3 * minutes} {
		if got := x.Databases[i].Month; got != (requests{Put: want + min(1, want)*30*x.Databases[i].Databases, Get: min(1, want) * 30 * x.Databases[i].Databases}) {
			t.Errorf("dbs[%d]: got %+v, want %d uploads", i, got, want)
		}
	}
	if x.Idle != (requests{}) || x.Sum.Databases != 7 || x.Sum.Month != (requests{Put: 65*minutes + 180, Get: 180}) ||
		x.Sum.Start != (requests{List: 12 + 2, Get: 12}) {
		t.Errorf("got %+v", x.Sum)
	}
	if want := ((65*minutes+180)*0.005 + 180*0.0004) / 1000; math.Abs(x.Sum.USD-want) > 1e-6 {
		t.Errorf("costs %f, want %f", x.Sum.USD, want)
	}
	var text strings.Builder
	if err := x.print(&text); err != nil || !strings.Contains(text.String(), "here 14 LIST") {
		t.Errorf("got %v, %s", err, text.String())
	}
}

func TestWhatMergingAndDeletingCostIsBounded(t *testing.T) {
	config := compaction.DefaultConfig()
	const day = 24 * time.Hour
	for _, c := range []struct {
		uploads int64
		change  func(*compaction.Config)
		want    requests
	}{
		{0, func(*compaction.Config) {}, requests{}},
		{1, func(*compaction.Config) {}, requests{Put: 4, Get: 4, List: 5, Delete: 5}},
		{1, func(c *compaction.Config) { c.Retention.External = true }, requests{Put: 4, Get: 4}},
		{30, func(c *compaction.Config) { c.Levels = c.Levels[:2] }, requests{Put: 60, Get: 60, List: 90, Delete: 90}},
		{1 << 40, func(c *compaction.Config) {
			c.Levels, c.Snapshots, c.Retention.External = compaction.Levels{{}, {Level: 1, Interval: day}}, day, true
		}, requests{Put: 60, Get: 1<<40 + 30}},
	} {
		changed := config
		c.change(&changed)
		if got := upkeep(changed, c.uploads); got != c.want {
			t.Errorf("%d uploads: got %+v, want %+v", c.uploads, got, c.want)
		}
	}
}
