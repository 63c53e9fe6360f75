package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/turns"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

// slot is one database of a fleet, open or parked.
type slot struct {
	folder *folder
	home
	member *turns.Member
	stop   func() // of its events

	mu     sync.Mutex
	open   *replicated     // nil: it has no turn
	parked *capture.Parked // nil: it was never open, or left in the middle
	poke   chan struct{}   // of its turn, capacity 1: see gone
	gone   bool            // its file is
	safe   bool            // a full copy is on the replica
	done   bool            // it is finished
	last   lastTurn
}

// home is where a database is.
type home struct {
	path    string
	replica string
	key     string // of its place
}

// lastTurn is what is remembered of the turns of a database.
type lastTurn struct {
	uploaded ltx.Pos
	bytes    int64
	resyncs  int
	locks    int
	active   bool      // written to in this turn
	next     time.Time // no upload before
	failures int       // one after the other
	trouble  *trouble  // nil: none
}

// trouble is why a database does not get on.
type trouble struct {
	err   error
	since time.Time
}

// longestPause is between two turns of a database that cannot be used.
const longestPause = 30 * time.Second

// config is the configuration of the database.
func (s *slot) config() (Database, error) {
	rel, err := filepath.Rel(s.folder.cfg.Dir, s.path)
	if err != nil {
		return Database{}, err
	}
	return s.folder.cfg.member(rel)
}

// event notes that a file of the database changed. It never blocks for long.
func (s *slot) event() {
	f := s.folder.fleet
	f.shared.mu.Lock()
	f.shared.events[s] = struct{}{}
	f.shared.mu.Unlock()
	select {
	case f.news <- struct{}{}:
	default:
	}
}

func (s *slot) noteActive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last.active = true
}

// check wakes the database if there is something to do for it.
func (s *slot) check() {
	if !s.idle() {
		s.member.Wake()
	}
}

// idle tells that a parked database is as it was left, or was given up.
func (s *slot) idle() bool {
	s.mu.Lock()
	p, given := s.parked, s.last.trouble != nil && isFenced(s.last.trouble.err)
	gone := s.gone
	s.mu.Unlock()
	if gone {
		return false
	}
	if given {
		return true
	}
	if p == nil || p.Waiting() > 0 {
		return false
	}
	changed, err := p.Changed()
	return !changed && err == nil
}

// leave lets the database go: its file is gone.
func (s *slot) leave() {
	s.mu.Lock()
	s.gone = true
	poke := s.poke
	s.mu.Unlock()
	if poke != nil {
		select {
		case poke <- struct{}{}:
		default:
		}
	}
	s.member.Wake()
}

func (s *slot) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open != nil
}

func (s *slot) isGone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// fenced returns the error for which the database was given up, if it was.
func (s *slot) fenced() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.last.trouble; t != nil && isFenced(t.err) {
		return t.err
	}
	return nil
}

// begin opens what a turn needs.
func (s *slot) begin(ctx context.Context) (*replicated, error) {
	cfg, err := s.config()
	if err != nil {
		return nil, err
	}
	f := s.folder.fleet
	log := f.log
	if s.inTrouble() {
		log = slog.New(discreet{log.Handler(), s.inTrouble})
	}
	d, err := newReplicated(ctx, cfg, f.buckets, log)
	if err != nil {
		return nil, err
	}
	s.folder.mu.Lock()
	d.from = origin{watcher: f.watcher, holder: s.folder.holder, succeeded: s.folder.succeeded}
	d.from.asked = func(tip replica.Tip) { f.tender.asked(s, tip) }
	d.from.shelf = f.tender.workshop.shelf
	d.from.uploaded = func(file ltx.FileInfo) { f.tender.uploaded(s, d, file) }
	s.folder.mu.Unlock()
	defer f.tender.opened(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	d.from.resume, d.from.notBefore = s.parked, s.last.next
	s.open, s.parked, s.poke, s.last.active = d, nil, make(chan struct{}, 1), false
	return d, nil
}

// end remembers what is to be known of a turn.
func (s *slot) end(d *replicated, p *capture.Parked) {
	r := d.Report()
	d.mu.Lock()
	parts := d.parts
	d.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open, s.poke, s.parked = nil, nil, p
	s.last.bytes += r.UploadedBytes
	s.last.resyncs += r.Resyncs
	s.last.locks += r.WriteLocks
	if parts == nil {
		return
	}
	s.last.next = parts.source.notBefore()
	if there := d.uploaded(parts); there.TXID > s.last.uploaded.TXID {
		s.last.uploaded = there
	}
}

// note remembers an error of a turn and says how long to pause; nil ends the
// trouble.
func (s *slot) note(err error) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.last.trouble
	if err == nil {
		if t != nil {
			s.folder.log.Info("database recovered", "db", s.path, "after", time.Since(t.since).Round(time.Millisecond), "last_error", t.err)
		}
		s.last.trouble, s.last.failures = nil, 0
		return 0
	}
	since := time.Now()
	if t != nil {
		since = t.since
	}
	s.last.trouble = &trouble{err, since}
	s.last.failures++
	return min(time.Second<<min(s.last.failures-1, 6), longestPause)
}

// inTrouble tells whether something was wrong at the end of the last turn, and
// still is. It has been told then.
func (s *slot) inTrouble() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.trouble != nil
}

// complain tells of an error that nobody else does, once.
func (s *slot) complain(err error) {
	if !s.inTrouble() {
		s.folder.log.Error("database is not replicated now, trying again", "db", s.path, "error", err)
	}
}

// hasDirectory tells whether the directory of the database does: without it there is
// no spool either.
func (s *slot) hasDirectory() bool {
	_, err := os.Stat(filepath.Dir(s.path))
	return err == nil
}
