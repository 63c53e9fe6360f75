package leaser

import (
	"time"
)

// Role is what a process does, as far as it knows.
type Role string

// The roles. People are told three of them: one who acquires still follows.
const (
	Follower  Role = "follower"
	Acquiring Role = "acquiring" // has the lease, but its Primary does not serve yet
	Primary   Role = "primary"
	CutOff    Role = "cut off" // does not know who has the lease: the lock cannot be read
)

// Shown is one of primary, follower and cut off.
func (r Role) Shown() Role {
	if r == Acquiring {
		return Follower
	}
	return r
}

// Status is what a process knows of the lease.
type Status struct {
	Role       Role
	Since      time.Time     // of the role
	Generation uint64        // held; 0: none
	Remaining  time.Duration // for which it may write; 0: not at all
	Degraded   bool          // held, but not renewed for a while
	Leaving    bool          // about to hand over
	Holder     Record        // the lock as last seen or written
	HolderSeen time.Time     // when; zero: never
	LastError  string        // of the last request, or why there is no answer; empty: it succeeded
}

// story is what is told about a Leaser.
type story struct {
	begun   Reading
	heard   Reading // when the last answer came
	failed  error   // of the last request
	unasked error   // why the holder could not be asked to hand over, the last time
	awake   Reading // the last time that this process ran
	still   pauseOf // since the last answer
	role    Role
	since   time.Time
	logged  bool // the outage
}

// answered keeps what came of a request.
func (s *story) answered(now Reading, err error) {
	s.failed = err
	if !unheard(err) {
		s.heard, s.still = now, pauseOf{}
	}
}

// Status tells the state of this process.
func (l *Leaser) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	l.observe(now)
	s := Status{Role: l.story.role, Since: l.story.since}
	if why := l.why(now); why != nil {
		s.LastError = why.Error()
	}
	s.Holder = l.protocol.watch.record
	if l.story.heard != (Reading{}) {
		s.HolderSeen = l.story.heard.Wall
	}
	if l.term != nil {
		s.Holder = l.protocol.held.record
		s.Generation, s.Leaving = l.term.generation, l.term.leaving
		s.Remaining, s.Degraded = l.protocol.remaining(now), l.degraded(now)
	}
	return s
}

func (l *Leaser) degraded(now Reading) bool {
	return l.protocol.held != nil && now.since(l.protocol.held.sent) > l.cfg.Soft
}

// observe keeps role, log and metrics up to date. The mutex is held.
func (l *Leaser) observe(now Reading) {
	if l.story.begun == (Reading{}) {
		l.story.begun = now
	}
	l.story.woke(now)
	if role := l.role(now); role != l.story.role {
		l.story.role, l.story.since = role, now.Wall
	}
	l.logOutage(now)
	l.metrics.observe(l, now)
}

func (l *Leaser) role(now Reading) Role {
	last := l.story.heard
	if last == (Reading{}) {
		last = l.story.begun
	}
	switch {
	case l.term != nil && l.term.check() == nil && l.term.serving:
		return Primary
	case l.term != nil:
		return Acquiring
	case now.since(last) > l.cfg.Soft:
		return CutOff
	}
	return Follower
}

// logOutage says once that the lock cannot be reached or the lease not renewed,
// and once that it can.
func (l *Leaser) logOutage(now Reading) {
	bad := l.outage(now)
	if bad == l.story.logged {
		return
	}
	l.story.logged = bad
	switch {
	case !bad:
		l.log.Info("lock in reach again", "role", l.story.role.Shown())
	case l.story.still.noted():
		l.log.Warn(l.story.still.what, "for", l.story.still.took.Round(time.Millisecond), "role", l.story.role.Shown(), "remaining", l.protocol.remaining(now))
	default:
		l.log.Warn("lock out of reach", "role", l.story.role.Shown(), "error", l.why(now), "remaining", l.protocol.remaining(now))
	}
}
