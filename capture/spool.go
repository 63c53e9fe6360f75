package capture

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
)

// File is an LTX file that waits in the spool.
type File struct {
	Info ltx.FileInfo
	Pos  ltx.Pos // position after it
	Path string
}

// Spool is the directory of files captured and not yet uploaded, in order. One
// file at a time is handed out; what is captured meanwhile gathers in the one
// behind it. It is safe for concurrent use.
type Spool struct {
	dir     string
	changed chan struct{} // there is a file to hand out
	room    chan struct{} // a file was uploaded

	node uint64 // goes into the header of files
	keep bool   // what is uploaded stays until Confirm

	mu    sync.Mutex
	files []spooled
	sent  int  // how many of the oldest are uploaded, and kept
	old   int  // how many an earlier process left and may have uploaded, or seal was called for: they must not change
	taken bool // the oldest that is not uploaded was handed out and must not change
	fresh bool // the newest file is not handed out yet: see add
	ready bool // files are handed out
	lost  bool // a file was handed out before the directory was lost
	bad   bool // a file is not what was put there

	latest int64 // newest timestamp of a file, in milliseconds
}

type spooled struct {
	File
	pre   ltx.Checksum // checksum of the database before it
	stamp stamp
}

// Next hands out the oldest file; the same one until Done is called with it.
// There is none before capture knows how the spool relates to the replica.
func (s *Spool) Next() (File, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.returned()
	waiting := s.waiting()
	if !s.ready || len(waiting) == 0 || len(waiting) == 1 && s.fresh && !s.taken {
		return File{}, false
	}
	if now, err := stampOf(waiting[0].Path); err != nil || now != waiting[0].stamp {
		s.bad, s.ready, s.taken = true, false, false
		signal(s.room)
		return File{}, false
	}
	s.taken = true
	return waiting[0].File, true
}

// waiting returns the files that are not uploaded.
func (s *Spool) waiting() []spooled { return s.files[s.sent:] }

// damaged tells whether Next found a file that is not what was put there.
func (s *Spool) damaged() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bad
}

// Done takes back a file that was handed out: it is on the bucket. It is
// removed, or kept until Confirm.
func (s *Spool) Done(f File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.returned() {
		return nil
	}
	waiting := s.waiting()
	if len(waiting) == 0 || waiting[0].Path != f.Path {
		return fmt.Errorf("drop %s: it is not the oldest file of the spool", f.Path)
	}
	s.sent++
	if !s.keep {
		if err := s.drop(); err != nil {
			s.sent--
			return err
		}
	}
	s.taken = false
	signal(s.room)
	if len(s.waiting()) > 0 {
		signal(s.changed)
	}
	return nil
}

// drop removes the oldest file, which is uploaded.
func (s *Spool) drop() error {
	if err := os.Remove(s.files[0].Path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("drop uploaded file: %w", err)
	}
	s.files = s.files[1:]
	s.sent--
	s.old = max(0, s.old-1)
	return nil
}

// Changed is signaled when Next may have something new.
func (s *Spool) Changed() <-chan struct{} { return s.changed }

// Size returns the number of waiting files and their size in bytes.
func (s *Spool) Size() (files int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.waiting() {
		bytes += f.Info.Size
	}
	return len(s.waiting()), bytes
}

// add takes over a finished draft. When a level-0 file waits that was not
// handed out, the draft is merged into it and takes its TXID; the position
// returned is the one after the result. The file is handed out from publish
// on: once it is uploaded it is gone, and until then the page sums can be
// brought up to it again after a crash.
func (s *Spool) add(d *draft) (ltx.Pos, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := d.spooled(s.dir)
	if err != nil {
		return ltx.Pos{}, err
	}
	if last := s.gathering(); last != nil && f.Info.Level == 0 {
		if err := s.merge(last, d.path); err != nil {
			return ltx.Pos{}, err
		}
		last.Pos.PostApplyChecksum = f.Pos.PostApplyChecksum
		last.stamp, err = stampOf(last.Path)
		s.fresh = true
		return last.Pos, err
	}
	if err := os.Rename(d.path, f.Path); err != nil {
		return ltx.Pos{}, fmt.Errorf("spool: %w", err)
	}
	d.kept = true
	if f.stamp, err = stampOf(f.Path); err != nil {
		return ltx.Pos{}, err
	}
	s.files = append(s.files, f)
	s.fresh = true
	return f.Pos, nil
}

// notBefore makes the timestamps of files go on from t: time in the replica
// never runs backwards, whatever the clock does.
func (s *Spool) notBefore(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.IsZero() {
		s.latest = max(s.latest, t.UnixMilli())
	}
}

// timestamp is that of a file that is begun now.
func (s *Spool) timestamp() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest = max(s.latest, time.Now().UnixMilli())
	return s.latest
}

// newest is the time of the newest file, or later.
func (s *Spool) newest() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest == 0 {
		return time.Now()
	}
	return time.UnixMilli(s.latest)
}

// open begins to hand out files.
func (s *Spool) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = true
	signal(s.changed)
}

// publish lets the file last added be handed out.
func (s *Spool) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh = false
	signal(s.changed)
}

// unpublished tells that an add was not followed by publish.
func (s *Spool) unpublished() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fresh
}

// gathering returns the file that further commits go into, if any.
func (s *Spool) gathering() *spooled {
	n := len(s.files)
	fixed := max(s.old, s.sent)
	if s.taken {
		fixed = max(fixed, s.sent+1)
	}
	if n <= fixed || s.files[n-1].Info.Level != 0 {
		return nil
	}
	return &s.files[n-1]
}

// holdsBase tells whether a snapshot waits for upload.
func (s *Spool) holdsBase() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.waiting(), func(f spooled) bool { return f.Info.IsSnapshot() })
}

// gatheringSize returns the size of the file that further commits go into.
func (s *Spool) gatheringSize() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.gathering(); f != nil {
		return f.Info.Size
	}
	return 0
}

// lose stops handing out files: the directory is gone. It tells whether the one
// handed out last may still be on its way to the bucket.
func (s *Spool) lose() (underWay bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = s.lost || s.taken && s.ready
	s.ready, s.taken = false, false
	return s.lost
}

// returned notes that the file handed out before lose is on its way no more.
func (s *Spool) returned() bool {
	was := s.lost
	s.lost = false
	if was {
		signal(s.room)
	}
	return was
}

// replace takes over the files of another Spool of the same directory.
func (s *Spool) replace(o *Spool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files, s.old, s.sent, s.taken, s.fresh, s.bad = o.files, o.old, 0, false, false, false
}

// clear forgets every file.
func (s *Spool) clear() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs error
	for _, f := range s.files {
		errs = errors.Join(errs, os.Remove(f.Path))
	}
	s.files, s.old, s.sent, s.taken, s.fresh = nil, 0, 0, false, false
	return errs
}

func fileName(f ltx.FileInfo) string {
	return fmt.Sprintf("%d-%s-%s.ltx", f.Level, f.Min, f.Max)
}

func (s *Spool) tempPath() string { return filepath.Join(s.dir, "draft.tmp") }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
