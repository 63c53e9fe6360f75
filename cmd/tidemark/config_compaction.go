package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/compaction"
)

// Compaction says what becomes of the files on replicas.
type Compaction struct {
	Levels    []Level        `yaml:"levels"`
	Snapshot  Snapshots      `yaml:"snapshot"`
	Level0    *time.Duration `yaml:"l0-retention,omitempty"` // nil: an hour, or the whole retention where that is shorter
	Retention Retention      `yaml:"retention"`
}

// Level is one above 0.
type Level struct {
	Level    *int          `yaml:"level,omitempty"` // its place in the list, if given
	Interval time.Duration `yaml:"interval"`
}

// Snapshots says how often they are made and how long history is kept; nil: as
// for all databases.
type Snapshots struct {
	Interval  *time.Duration `yaml:"interval,omitempty"`
	Retention *time.Duration `yaml:"retention,omitempty"`
}

// Retention says who deletes. In a file it is also the word external.
type Retention struct {
	Enabled bool `yaml:"enabled"`
}

// UnmarshalText reads the short form.
func (r *Retention) UnmarshalText(text []byte) error {
	if string(text) != "external" {
		return errors.New("want external, or enabled: false below it; how long is said by snapshot.retention")
	}
	r.Enabled = false
	return nil
}

// Scratch says where files are put while they are made.
type Scratch struct {
	Dir   string       `yaml:"scratch-dir"`   // empty: see place
	Limit capture.Size `yaml:"scratch-limit"` // bytes; 0: none
}

// leastScratch is what merging needs to get on.
const leastScratch = 64 << 20

// Validate checks the fields.
func (s Scratch) Validate() error {
	if s.Limit < 0 || s.Limit > 0 && s.Limit < leastScratch {
		return fmt.Errorf("scratch-limit: %d; use 0 for none, or at least 64MiB", s.Limit)
	}
	if s.Dir != "" && !filepath.IsAbs(s.Dir) {
		return fmt.Errorf("scratch-dir: %q is not an absolute path", s.Dir)
	}
	return nil
}

// place is the directory below which a private one is made. That for large
// temporary files goes before the one that is in memory on many systems.
func (s Scratch) place() string {
	const large = "/var/tmp"
	if s.Dir != "" || os.Getenv("TMPDIR") != "" || unix.Access(large, unix.W_OK|unix.X_OK) != nil {
		return cmp.Or(s.Dir, os.TempDir())
	}
	return large
}

func defaultCompaction() Compaction {
	d := compaction.DefaultConfig()
	c := Compaction{Retention: Retention{Enabled: true}}
	for _, l := range d.Levels[1:] {
		c.Levels = append(c.Levels, Level{Interval: l.Interval})
	}
	c.Snapshot = Snapshots{Interval: &d.Snapshots, Retention: &d.Retention.Window}
	return c
}

// levels are those of the list, and level 0.
func (c Compaction) levels() (compaction.Levels, error) {
	levels := compaction.Levels{{}}
	for i, l := range c.Levels {
		if i == 0 && l.Level != nil && *l.Level == 0 {
			if l.Interval != 0 {
				return nil, errors.New("levels: level 0 takes no interval, its files come as they are captured")
			}
			continue
		}
		n := len(levels)
		switch {
		case l.Level != nil && *l.Level != n:
			return nil, fmt.Errorf("levels: level %d stands where level %d must; the first one is 1", *l.Level, n)
		case l.Interval < time.Second || l.Interval > 366*24*time.Hour:
			return nil, fmt.Errorf("levels: level %d has interval %s; use 1s to 8784h", n, l.Interval)
		case l.Interval < levels[n-1].Interval:
			return nil, fmt.Errorf("levels: level %d has interval %s, shorter than %s of the level it is made from", n, l.Interval, levels[n-1].Interval)
		}
		levels = append(levels, compaction.Level{Level: n, Interval: l.Interval})
	}
	return levels, levels.Validate()
}

// of joins what holds for all databases with what one says.
func (c Compaction) of(own Snapshots) (compaction.Config, error) {
	levels, err := c.levels()
	if err != nil {
		return compaction.Config{}, err
	}
	all := c.Snapshot.over(defaultCompaction().Snapshot)
	own = own.over(all)
	config := compaction.DefaultConfig()
	config.Levels, config.Snapshots = levels, *own.Interval
	config.Retention.Window, config.Retention.External = *own.Retention, !c.Retention.Enabled
	config.Retention.Level0 = min(config.Retention.Level0, *own.Retention)
	if c.Level0 != nil {
		config.Retention.Level0 = *c.Level0
	}
	return config, checkTimes(config)
}

func checkTimes(c compaction.Config) error {
	const most = 10 * 366 * 24 * time.Hour
	for _, d := range []struct {
		key   string
		value time.Duration
		least time.Duration
	}{
		{"snapshot.interval", c.Snapshots, time.Second},
		{"snapshot.retention", c.Retention.Window, time.Second},
		{"l0-retention", c.Retention.Level0, time.Second},
	} {
		if d.value < d.least || d.value > most {
			return fmt.Errorf("%s: %s; use %s to %s, and retention: external to keep everything", d.key, d.value, d.least, most)
		}
	}
	if c.Retention.Level0 > c.Retention.Window {
		return fmt.Errorf("l0-retention: %s is longer than snapshot.retention, %s, which holds for all files",
			c.Retention.Level0, c.Retention.Window)
	}
	return nil
}

// over fills in what s does not say.
func (s Snapshots) over(all Snapshots) Snapshots {
	return Snapshots{Interval: cmp.Or(s.Interval, all.Interval), Retention: cmp.Or(s.Retention, all.Retention)}
}

// warnRetention tells of settings that work but are hardly meant.
func (d Database) warnRetention(log *slog.Logger) {
	c := d.compaction
	if !c.Retention.External && c.Retention.Window < c.Snapshots {
		log.Warn("snapshot.retention is shorter than snapshot.interval: the newest snapshot stays all the same, and what is needed with it",
			d.kind(), d.Path+d.Dir, "retention", c.Retention.Window, "interval", c.Snapshots)
	}
}
