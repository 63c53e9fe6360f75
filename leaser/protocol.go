package leaser

import (
	"errors"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/storage"
)

const (
	// remembered is the number of writes of unknown outcome that are told apart.
	remembered = 8
	// coolOff is how long a process does not compete after it gave the lease up.
	coolOff = 10 * time.Second
	// politeness is what the others wait beyond their wait for a successor.
	politeness = 5 * time.Second
	// fastPoll is the time between two looks of who expects the lease.
	fastPoll = 500 * time.Millisecond
)

// move is what the protocol wants to be done.
type move int

const (
	rest  move = iota // nothing before some time
	look              // read the lock
	write             // store the draft
)

// kind is the purpose of a write.
type kind int

const (
	take kind = iota
	renew
	release
	ask // another holder for a handoff
)

// attempt is one write of the lock.
type attempt struct {
	number uint64 // of all the writes of this process
	kind   kind
	record Record
	cond   storage.Condition
	sent   Reading // before it was
}

// self is how locks name this process.
type self struct{ name, owner, boot, cluster, advertise string }

// luck is where chance comes from.
type luck struct {
	within func(time.Duration) time.Duration // at random, from 0 to below
	nonce  func() string
}

// protocol is the state machine of one process. It does nothing by itself: it
// is told the time and what came of requests, and says what to do next. At most
// one request is under way at a time.
type protocol struct {
	cfg  Config
	self self
	luck luck

	known  uint64 // highest generation seen
	number uint64 // of the last attempt
	tries  []attempt
	pace   pace
	want   want
	watch  watch // without the lease
	held   *held // with the lease
	lost   error // how the last term ended; nil: in good order
}

// pace says when the next request may be sent.
type pace struct {
	owed     debt
	failures int           // writes in a row
	writeAt  time.Duration // boot time; no write before
	lookAt   time.Duration // no look before
}

// debt says whether a look comes before the next write.
type debt int

const (
	none debt = iota
	wish      // a write tells as well
	must
)

// want is what this process has in mind.
type want struct {
	compete bool          // take the lease when it may be taken
	after   time.Duration // boot time; does not compete before
	ask     bool          // for a handoff
}

var (
	errVanished = errors.New("the lock has vanished")
	errReplaced = errors.New("the lock was replaced by something else")
	errDeadline = errors.New("not renewed in time")
	errTaken    = errors.New("another process has taken the lock")
	errGivenUp  = errors.New("given up without an answer")
)

// next says what to do at now, or, with rest, until which boot time nothing is
// to be done.
func (p *protocol) next(now Reading) (move, time.Duration) {
	p.expire(now)
	if p.held != nil {
		return p.nextHolding(now)
	}
	return p.nextWatching(now)
}

// after is a rest until at, or the move when it is time.
func after(now Reading, at time.Duration, m move) (move, time.Duration) {
	if now.Boot < at {
		return rest, at
	}
	return m, now.Boot
}

// draft returns the write that next asked for. It counts as sent at now.
func (p *protocol) draft(now Reading, heads map[string]Head) (attempt, bool) {
	if m, _ := p.next(now); m != write {
		return attempt{}, false
	}
	a := attempt{sent: now}
	switch {
	case p.held != nil:
		p.draftHolding(&a, heads)
	case p.mayAsk() && p.takeAt(now) > now.Boot:
		p.draftAsk(&a)
	default:
		p.draftTake(&a)
	}
	p.number++
	a.number, a.record.Nonce = p.number, p.luck.nonce()
	return a, true
}

// stamp fills in what each record of a holder says.
func (p *protocol) stamp(r *Record, now Reading) {
	r.ExpiresAt = now.Wall.Add(p.cfg.TTL).UTC()
	r.Owner, r.BootID, r.Cluster, r.Advertise = p.self.owner, p.self.boot, p.self.cluster, p.self.advertise
	r.TTLMillis, r.State = p.cfg.TTL.Milliseconds(), Held
}

// wrote tells what came of an attempt: the ETag, or an error.
func (p *protocol) wrote(now Reading, a attempt, etag string, err error) {
	p.expire(now)
	current := p.held != nil && p.held.record.Generation == a.record.Generation
	switch {
	case err == nil && a.kind == ask:
		p.asked(a, etag)
	case err == nil && a.kind == take && p.held == nil:
		p.hold(now, a, etag)
	case err == nil && current:
		p.kept(now, a, etag)
	case errors.Is(err, storage.ErrPrecondition):
		p.remember(a) // what is between may have sent it twice
		p.failed(now)
		p.pace.owed, p.pace.lookAt = must, now.Boot
	case errors.Is(err, storage.ErrSkewed):
		p.skewed(now)
	case err != nil:
		p.remember(a)
		p.failed(now)
		p.pace.owed, p.pace.lookAt = max(wish, p.pace.owed), now.Boot
	default: // of a term that is over
		p.pace.owed = must
	}
}

// failed puts the next write off.
func (p *protocol) failed(now Reading) {
	pause := retryPause
	if p.pace.failures > 0 {
		pause *= 2
	}
	p.pace.failures++
	p.pace.writeAt = now.Boot + pause
}

// skewed: with a wrong clock no attempt will do; a holder lets its time run out.
func (p *protocol) skewed(now Reading) {
	p.failed(now)
	if p.held != nil {
		p.held.mute = true
	}
}

// remember keeps an attempt that may be stored, or may be yet.
func (p *protocol) remember(a attempt) {
	p.tries = append(p.tries, a)
	p.tries = slices.Delete(p.tries, 0, max(0, len(p.tries)-remembered))
}

// tried finds the attempt that wrote a record.
func (p *protocol) tried(r Record) (attempt, bool) {
	for _, a := range p.tries {
		if r.Nonce != "" && a.record.Nonce == r.Nonce {
			return a, true
		}
	}
	return attempt{}, false
}

// blind tells that a look has failed. After a write of unknown outcome the next
// write tells as much: it is refused unless nothing has happened.
func (p *protocol) blind(now Reading) {
	switch {
	case p.held == nil && p.pace.owed == none:
		p.pace.lookAt = now.Boot + p.poll()
	case p.held != nil && p.pace.owed == wish:
		p.pace.owed = none
	default:
		p.pace.lookAt = now.Boot + retryPause
	}
}

// looked tells what the lock is. It returns an error when this process can
// never have the lease.
func (p *protocol) looked(now Reading, s sight) error {
	p.expire(now)
	p.pace.owed = none
	p.known = max(p.known, s.record.Generation)
	if p.held != nil {
		p.lookedHolding(now, s)
		return nil
	}
	return p.lookedWatching(now, s)
}
