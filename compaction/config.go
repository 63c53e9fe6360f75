// Package compaction keeps the remote copy of a database small, fast to
// restore and cheap: it merges files into higher levels by wall-clock buckets,
// adds snapshots, and deletes what nothing needs any more. What to do is
// decided by pure functions, Due and Expired, over a listing; a Worker carries
// it out. The package never looks at a live database: who writes snapshots of
// one, or still has captured files, is behind interfaces declared here.
package compaction

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
)

// Level says how often a level is made from the one below it.
type Level struct {
	Level    int           `yaml:"level"`
	Interval time.Duration `yaml:"interval"` // the length of its buckets; none for level 0
}

// Levels are the levels from 0 upwards, without that of the snapshots.
type Levels []Level

// DefaultLevels are 30 seconds, 5 minutes and an hour.
func DefaultLevels() Levels {
	return Levels{{Level: 0}, {1, 30 * time.Second}, {2, 5 * time.Minute}, {3, time.Hour}}
}

// Validate checks that the levels are numbered from 0, that all but level 0
// have an interval, and that there is room for them below the snapshots.
func (l Levels) Validate() error {
	if len(l) == 0 {
		return errors.New("levels: at least level 0 is needed")
	}
	for i, level := range l {
		switch {
		case level.Level != i:
			return fmt.Errorf("levels: level %d stands where level %d must; number them from 0", level.Level, i)
		case i >= ltx.LevelSnapshot:
			return fmt.Errorf("levels: level %d is too high; %d is that of the snapshots", i, ltx.LevelSnapshot)
		case i == 0 && level.Interval != 0:
			return errors.New("levels: level 0 takes no interval, its files come as they are captured")
		case i > 0 && level.Interval <= 0:
			return fmt.Errorf("levels: level %d needs an interval above 0", i)
		}
	}
	return nil
}

// Retention says how long files are kept at least.
type Retention struct {
	// Level0 is the time in which every single captured state can be
	// restored. Below an hour it is shorter than a stalled writer may take to
	// finish a request, which matters where several machines may write.
	Level0 time.Duration `yaml:"level-0"`
	// Window is the time in which every moment can be restored, as exactly as
	// level 1 is fine.
	Window time.Duration `yaml:"window"`
	// External means that somebody else deletes, such as a lifecycle rule:
	// nothing is ever deleted here.
	External bool `yaml:"external"`
}

// Validate checks the durations and their relation.
func (r Retention) Validate() error {
	switch {
	case r.Level0 <= 0:
		return fmt.Errorf("retention of level 0 is %v; it must be above 0, external retention deletes nothing", r.Level0)
	case r.Window <= 0:
		return fmt.Errorf("retention is %v; it must be above 0, external retention deletes nothing", r.Window)
	case r.Level0 > r.Window:
		return fmt.Errorf("retention of level 0 is %v, longer than the retention of all else, %v", r.Level0, r.Window)
	}
	return nil
}

// Slice bounds one job, so that a backlog is worked off in steps that each
// make progress.
type Slice struct {
	Files int   `yaml:"files"`
	Bytes int64 `yaml:"bytes"` // one file that is larger makes a job of its own
}

// Config is everything that Due and Expired depend on.
type Config struct {
	Levels    Levels        `yaml:"levels"`
	Snapshots time.Duration `yaml:"snapshots"` // interval
	Retention Retention     `yaml:"retention"`
	Slice     Slice         `yaml:"slice"`
}

// DefaultConfig has a snapshot a day, every moment of a day and every state of
// an hour.
func DefaultConfig() Config {
	return Config{
		Levels:    DefaultLevels(),
		Snapshots: 24 * time.Hour,
		Retention: Retention{Level0: time.Hour, Window: 24 * time.Hour},
		Slice:     Slice{Files: 256, Bytes: 256 << 20},
	}
}

// Validate checks all settings.
func (c Config) Validate() error {
	if err := c.Levels.Validate(); err != nil {
		return err
	}
	if c.Snapshots <= 0 {
		return fmt.Errorf("snapshot interval is %v; it must be above 0", c.Snapshots)
	}
	if c.Slice.Files < 1 || c.Slice.Bytes < 1 {
		return fmt.Errorf("a slice of %d files and %d bytes makes no progress", c.Slice.Files, c.Slice.Bytes)
	}
	return c.Retention.Validate()
}
