package main

import (
	"time"

	"github.com/tidemark-io/tidemark/compaction"
)

// upkeep is what merging, snapshots and deleting cost in a month with so many
// uploads, at most: each file of a level is read once to make the next one of
// it, and is deleted together with others.
func upkeep(c compaction.Config, uploads int64) (r requests) {
	below, made := uploads, uploads
	objects := within(uploads, c.Retention.Level0)
	for _, level := range c.Levels[1:] {
		files := min(int64(month/level.Interval), below)
		r = r.plus(1, requests{Put: files, Get: below})
		objects += within(files, c.Retention.Window)
		made += files
		below = files
	}
	snapshots := min(int64(month/c.Snapshots), uploads)
	r = r.plus(snapshots, requests{Put: 1, Get: 1})
	if c.Retention.External {
		return r
	}
	made += snapshots
	deletions := min(int64(month/max(c.Retention.Pause(), time.Second)), made)
	if deletions == 0 {
		return r
	}
	return r.plus(deletions, requests{List: 1 + objects/1000, Delete: 1 + made/deletions/1000})
}

// within is how many of the files of a month there are in a time.
func within(files int64, d time.Duration) int64 {
	return int64(float64(files) * min(1, float64(d)/float64(month)))
}
