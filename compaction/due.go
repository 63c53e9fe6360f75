package compaction

import (
	"time"

	"github.com/tidemark-io/tidemark/ltx"
)

// Due returns the files to be made now, lowest level first, and the holes that
// stop a level.
//
// A level continues where it, or a higher one, ends, so what was done is known
// from the files alone. What the level below holds beyond that is merged once
// the bucket is over in which it was uploaded, one file a bucket (more if it
// exceeds a slice), and not before all of it is confirmed. Files that start at
// TXID 1 are never sources. No job reaches over a hole: a level goes on behind
// it when a snapshot does. A gap in the level below is filled from levels
// below that. Of files that overlap, those that reach furthest are taken.
//
// A snapshot is due when the bucket of the newest one is over and there are
// pages newer than it, but not while a claim is the newest file: beside a
// snapshot it looks like that of a base, which leads nowhere, and whoever goes
// on by increments would have to read the snapshot.
func Due(files []ltx.FileInfo, c Config, confirmed ltx.TXID, now time.Time) ([]Job, []Hole) {
	s := look(files, c, confirmed, now)
	return s.jobs, s.holes
}

// survey is what a listing shows at one time.
type survey struct {
	config    Config
	confirmed ltx.TXID
	now       time.Time
	files     []ltx.FileInfo // usable ones
	snapshots []ltx.TXID     // where those end that are confirmed, ascending

	jobs  []Job
	holes []Hole
	next  time.Time // when more may be merged, of the same files; zero: never

	snapshotDue  time.Time // when the bucket of the newest snapshot is over
	snapshotNext time.Time // when a snapshot is due of the same files; zero: never
}

func look(files []ltx.FileInfo, c Config, confirmed ltx.TXID, now time.Time) *survey {
	s := &survey{config: c, confirmed: confirmed, now: now}
	s.sort(files)
	for _, level := range c.Levels {
		if level.Level > 0 {
			s.level(level)
		}
	}
	s.snapshot()
	return s
}

// snapshot says whether one is due.
func (s *survey) snapshot() {
	var newest ltx.TXID
	var made time.Time
	for _, f := range s.files {
		if f.IsSnapshot() {
			newest = max(newest, f.Max)
			if f.ModTime.After(made) {
				made = f.ModTime
			}
		}
	}
	if newest > 0 {
		s.snapshotDue = bucketEnd(made, s.config.Snapshots)
	}
	changed, claimed := false, ltx.TXID(0)
	highest := newest
	for _, f := range s.files {
		changed = changed || f.Max > newest && !isClaim(f)
		highest = max(highest, f.Max)
		if isClaim(f) {
			claimed = max(claimed, f.Max)
		}
	}
	if !changed || claimed > newest && claimed == highest {
		return
	}
	if s.now.Before(s.snapshotDue) {
		s.snapshotNext = s.snapshotDue
		return
	}
	s.jobs = append(s.jobs, Job{Level: ltx.LevelSnapshot})
}

// bucketEnd is when the bucket is over that t falls into.
func bucketEnd(t time.Time, length time.Duration) time.Time {
	return t.Truncate(length).Add(length)
}

// level finds the jobs of one level.
func (s *survey) level(l Level) {
	w := &walk{survey: s, level: l.Level, sources: s.sources(l.Level)}
	w.pos = s.reached(l.Level)
	if w.pos == 0 {
		return // without anything to start from, a snapshot is due first
	}
	var g group
	for {
		f, ok := w.step()
		if !ok {
			break
		}
		end := bucketEnd(f.ModTime, l.Interval)
		if !g.takes(f, end, s.config.Slice) {
			if !s.close(l, g) {
				return
			}
			g = group{end: g.end}
		}
		g.add(f, end)
	}
	s.close(l, g)
}

// close makes a job of a group, if it is due. If not, nothing after it is.
func (s *survey) close(l Level, g group) bool {
	if len(g.files) == 0 {
		return true
	}
	if s.now.Before(g.end) {
		if at := settled(g.end, l.Interval); s.next.IsZero() || at.Before(s.next) {
			s.next = at
		}
		return false
	}
	if g.max > s.confirmed {
		return false
	}
	s.jobs = append(s.jobs, Job{Level: l.Level, Sources: g.files})
	return true
}

// group is what becomes one file.
type group struct {
	files []ltx.FileInfo
	end   time.Time // of the bucket; never before that of the groups before it
	max   ltx.TXID
	bytes int64
}

// takes tells whether f belongs to the group too.
func (g *group) takes(f ltx.FileInfo, end time.Time, limit Slice) bool {
	return len(g.files) == 0 || !end.After(g.end) && f.Min-1 <= g.max &&
		len(g.files) < limit.Files && g.bytes+f.Size <= limit.Bytes
}

func (g *group) add(f ltx.FileInfo, end time.Time) {
	if end.After(g.end) {
		g.end = end
	}
	g.files = append(g.files, f)
	g.max = f.Max
	g.bytes += f.Size
}
