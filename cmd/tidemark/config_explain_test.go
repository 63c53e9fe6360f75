package main

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
		if got := x.Databases[i].Month; got != (requests{Put: want}) {
			t.Errorf("dbs[%d]: got %+v, want %d uploads", i, got, want)
		}
	}
	if x.Idle != (requests{}) || x.Sum.Databases != 7 || x.Sum.Month != (requests{Put: 65 * minutes}) ||
		x.Sum.Start != (requests{List: 6 + 2, Get: 12}) {
		t.Errorf("got %+v", x.Sum)
	}
	if want := 65 * minutes * 0.005 / 1000; math.Abs(x.Sum.USD-want) > 1e-6 {
		t.Errorf("costs %f, want %f", x.Sum.USD, want)
	}
	var text strings.Builder
	if err := x.print(&text); err != nil || !strings.Contains(text.String(), "here 8 LIST") {
		t.Errorf("got %v, %s", err, text.String())
	}
}
