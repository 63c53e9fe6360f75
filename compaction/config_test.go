package compaction_test

import (
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/compaction"
)

func TestLevelsAreCheckedAsTheReferenceDoes(t *testing.T) {
	upTo := func(n int) compaction.Levels {
		levels := compaction.Levels{{}}
		for i := 1; i <= n; i++ {
			levels = append(levels, compaction.Level{Level: i, Interval: time.Minute})
		}
		return levels
	}
	for name, test := range map[string]struct {
		levels compaction.Levels
		ok     bool
	}{
		"the defaults":               {compaction.DefaultLevels(), true},
		"level 0 alone":              {upTo(0), true},
		"eight levels":               {upTo(8), true},
		"none":                       {nil, false},
		"nine levels":                {upTo(9), false},
		"numbered from 1":            {compaction.Levels{{Level: 1, Interval: time.Second}}, false},
		"a number left out":          {compaction.Levels{{}, {Level: 2, Interval: time.Second}}, false},
		"an interval on level 0":     {compaction.Levels{{Interval: time.Second}}, false},
		"no interval above 0":        {compaction.Levels{{}, {Level: 1}}, false},
		"a negative interval":        {compaction.Levels{{}, {Level: 1, Interval: -time.Second}}, false},
		"a number that comes again":  {compaction.Levels{{}, {Level: 0}}, false},
		"shorter at a higher number": {compaction.Levels{{}, {1, time.Hour}, {2, time.Second}}, true},
	} {
		if err := test.levels.Validate(); (err == nil) != test.ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	if err := compaction.DefaultConfig().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for name, change := range map[string]func(*compaction.Config){
		"levels":              func(c *compaction.Config) { c.Levels = nil },
		"snapshot interval":   func(c *compaction.Config) { c.Snapshots = 0 },
		"no files in a slice": func(c *compaction.Config) { c.Slice.Files = 0 },
		"no bytes in a slice": func(c *compaction.Config) { c.Slice.Bytes = 0 },
		"level 0 for no time": func(c *compaction.Config) { c.Retention.Level0 = 0 },
		"negative window":     func(c *compaction.Config) { c.Retention.Window = -time.Hour },
		"level 0 the longest": func(c *compaction.Config) { c.Retention.Level0 = 25 * time.Hour },
	} {
		c := compaction.DefaultConfig()
		change(&c)
		if c.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
