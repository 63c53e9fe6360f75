package main

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/compaction"
)

const oneDatabase = "\ndbs: [{path: /a.db, replica: {url: \"file:///b\"}}]\n"

func TestLevelsAndRetentionAsLitestreamWritesThem(t *testing.T) {
	for text, change := range map[string]func(*compaction.Config){
		"": func(*compaction.Config) {},
		"levels:\n- interval: 10m\n- interval: 2h": func(c *compaction.Config) {
			c.Levels = compaction.Levels{{}, {Level: 1, Interval: 10 * time.Minute}, {Level: 2, Interval: 2 * time.Hour}}
		},
		"levels: [{level: 0}, {level: 1, interval: 1m}]": func(c *compaction.Config) { c.Levels = compaction.Levels{{}, {Level: 1, Interval: time.Minute}} },
		"levels: []":                     func(c *compaction.Config) { c.Levels = compaction.Levels{{}} },
		"snapshot: {interval: 6h}":       func(c *compaction.Config) { c.Snapshots = 6 * time.Hour },
		"snapshot: {retention: 72h}":     func(c *compaction.Config) { c.Retention.Window = 72 * time.Hour },
		"snapshot: {retention: 30m}":     func(c *compaction.Config) { c.Retention.Window, c.Retention.Level0 = 30*time.Minute, 30*time.Minute },
		"l0-retention: 5m":               func(c *compaction.Config) { c.Retention.Level0 = 5 * time.Minute },
		"retention: external":            func(c *compaction.Config) { c.Retention.External = true },
		"retention: {enabled: false}":    func(c *compaction.Config) { c.Retention.External = true },
		"retention:\n  enabled: true":    func(*compaction.Config) {},
		"scratch-limit: 0":               func(*compaction.Config) {},
		"snapshot:\nlevels:\nretention:": func(*compaction.Config) {},
	} {
		want := compaction.DefaultConfig()
		change(&want)
		c, err := parseConfig([]byte(text+oneDatabase), nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := c.Databases[0].compaction; !equalCompaction(got, want) {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
}

func equalCompaction(a, b compaction.Config) bool {
	if len(a.Levels) != len(b.Levels) {
		return false
	}
	for i := range a.Levels {
		if a.Levels[i] != b.Levels[i] {
			return false
		}
	}
	return a.Snapshots == b.Snapshots && a.Retention == b.Retention && a.Slice == b.Slice
}

func TestADatabaseMayHaveItsOwnSnapshots(t *testing.T) {
	c, err := parseConfig([]byte(`
snapshot: {interval: 2h, retention: 48h}
dbs:
- {path: /a.db, replica: {url: "file:///a"}, snapshot: {retention: 96h}}
- {path: /b.db, replica: {url: "file:///b"}, snapshot: {interval: 1h}}
- {path: /c.db, replica: {url: "file:///c"}}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][2]time.Duration{{2 * time.Hour, 96 * time.Hour}, {time.Hour, 48 * time.Hour}, {2 * time.Hour, 48 * time.Hour}} {
		got := c.Databases[i].compaction
		if got.Snapshots != want[0] || got.Retention.Window != want[1] {
			t.Errorf("dbs[%d]: got %s and %s, want %s", i, got.Snapshots, got.Retention.Window, want)
		}
	}
}

func TestLevelsAndRetentionThatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		"levels: [{interval: 0s}]":                                "level 1 has interval 0s",
		"levels: [{interval: -1h}]":                               "level 1 has interval -1h",
		"levels: [{}]":                                            "level 1 has interval 0s",
		"levels: [{level: 2, interval: 1h}]":                      "level 2 stands where level 1 must",
		"levels: [{level: 0, interval: 1h}]":                      "level 0 takes no interval",
		"levels: [{interval: 1h}, {interval: 1m}]":                "level 2 has interval 1m0s, shorter than 1h0m0s",
		"levels: [" + strings.Repeat("{interval: 1h}, ", 9) + "]": "level 9 is too high",
		"snapshot: {interval: 0s}":                                "snapshot.interval: 0s",
		"snapshot: {interval: 24}":                                "want a duration",
		"snapshot: {retention: 0s}":                               "snapshot.retention: 0s",
		"snapshot: {retention: -1h}":                              "snapshot.retention: -1h",
		"snapshot: {retention: 900000h}":                          "snapshot.retention: 900000h",
		"snapshot: 24h":                                           "want keys with values",
		"l0-retention: 0":                                         "l0-retention: 0s",
		"l0-retention: 0s":                                        "l0-retention: 0s; use 1s to",
		"l0-retention: -1s":                                       "l0-retention: -1s",
		"l0-retention: 25h":                                       "longer than snapshot.retention",
		"retention: 24h":                                          "snapshot.retention",
		"retention: {enabled: maybe}":                             "true or false",
		"scratch-limit: 1MiB":                                     "scratch-limit: 1048576; use 0",
		"scratch-dir: tmp":                                        "not an absolute path",
	} {
		_, err := parseConfig([]byte(text+oneDatabase), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	_, err := parseConfig([]byte("dbs: [{path: /a.db, replica: {url: \"file:///b\"}, retention: {enabled: false}}]"), nil)
	if err == nil || !strings.Contains(err.Error(), "move it to the top") {
		t.Errorf("got %v for a key that holds for all", err)
	}
}
