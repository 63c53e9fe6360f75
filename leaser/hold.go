package leaser

import (
	"fmt"
	"time"

	"github.com/tidemark-io/tidemark/storage"
)

// held is what a process with the lease knows.
type held struct {
	etag      string
	record    Record
	prior     Record        // the lock before it was taken
	fence     string        // TXID, of this term
	sent      Reading       // of the last write known to be stored; the deadline counts from it
	renewAt   time.Duration // boot time
	confirmed uint64        // number of the last attempt known to be stored
	wanted    uint64        // somebody waits for an attempt after this one
	mute      bool          // no more attempts
	leaving   leaving
	stopped   bool          // nothing is written any more; to be released
	until     time.Duration // boot time; with stopped, the release is given up then; with leaving, no renewal after it
}

// leaving is what a holder that steps down tells the others.
type leaving struct {
	begun     bool
	successor string
}

// hold begins a term.
func (p *protocol) hold(now Reading, a attempt, etag string) {
	p.known = max(p.known, a.record.Generation)
	if now.since(a.sent) >= p.cfg.Deadline {
		p.pace.owed = must
		return
	}
	p.held = &held{etag: etag, record: a.record, prior: p.watch.record, sent: a.sent, confirmed: a.number}
	p.self.cluster = a.record.Cluster
	p.scheduleRenewal(now.Boot)
	p.settled()
}

// settled: the outcome of every earlier attempt is known.
func (p *protocol) settled() {
	p.tries = nil
	p.pace = pace{}
}

func (p *protocol) scheduleRenewal(from time.Duration) {
	jitter := p.cfg.Renew * renewJitter / 100
	p.held.renewAt = from + p.cfg.Renew - jitter + p.luck.within(2*jitter)
}

// valid says that the process may believe that nobody else writes.
func (p *protocol) valid(now Reading) bool { return p.remaining(now) > 0 }

// remaining is the time for which the process may write; 0: not any more.
func (p *protocol) remaining(now Reading) time.Duration {
	if p.held == nil || p.held.stopped {
		return 0
	}
	return max(0, p.cfg.Deadline-now.since(p.held.sent))
}

// expire ends a term whose deadline is over. Even if the next renewal would
// succeed it is not resumed: its application has been stopped.
func (p *protocol) expire(now Reading) {
	switch {
	case p.held == nil:
	case !p.held.stopped && !p.valid(now):
		p.lose(errDeadline)
	case p.held.stopped && now.Boot >= p.held.until:
		p.lose(errGivenUp)
	}
}

// lose ends a term. The lock is looked at before anything else.
func (p *protocol) lose(why error) {
	p.lost = why
	p.held = nil
	p.watch = watch{}
	p.pace = pace{}
}

func (p *protocol) nextHolding(now Reading) (move, time.Duration) {
	h := p.held
	switch {
	case h.mute && !h.stopped:
		return rest, now.Boot + p.remaining(now)
	case p.pace.owed != none:
		return after(now, p.pace.lookAt, look)
	case h.leaving.begun && !h.stopped && now.Boot >= h.until:
		return rest, now.Boot + p.remaining(now)
	case h.stopped, h.wanted > 0 && h.wanted >= h.confirmed:
		return after(now, p.pace.writeAt, write)
	}
	return after(now, max(h.renewAt, p.pace.writeAt), write)
}

func (p *protocol) draftHolding(a *attempt, heads map[string]Head) {
	h := p.held
	a.kind, a.record, a.cond = renew, h.record, storage.Condition{ETag: h.etag}
	p.stamp(&a.record, a.sent)
	a.record.Seq++
	a.record.setHeads(heads)
	if h.fence != "" {
		a.record.Fence = h.fence
	}
	a.record.Leaving, a.record.Successor = h.leaving.begun, h.leaving.successor
	if h.stopped {
		a.kind, a.record.Request, a.record.Leaving, a.record.State = release, "", false, Released
		if h.leaving.successor != "" {
			a.record.State = Handoff
		}
	}
}

// setHeads puts the head of an only database, which has no name, where it has
// always been.
func (r *Record) setHeads(heads map[string]Head) {
	if len(heads) == 0 {
		return // what is there is still true
	}
	r.Head, r.Heads = nil, heads
	if only, ok := heads[""]; ok && len(heads) == 1 {
		r.Head, r.Heads = &only, nil
	}
}

// kept: a write of this term was stored.
func (p *protocol) kept(now Reading, a attempt, etag string) {
	if a.kind == release {
		p.freed(now, a, etag)
		return
	}
	p.held.etag, p.held.record, p.held.sent, p.held.confirmed = etag, a.record, a.sent, a.number
	p.scheduleRenewal(now.Boot)
	p.settled()
}

// freed ends a term in good order.
func (p *protocol) freed(now Reading, a attempt, etag string) {
	p.lost, p.held = nil, nil
	p.settled()
	p.watch = watch{seen: true, since: now, looked: now.Boot, sight: sight{etag: etag, record: a.record}}
	p.watch.wait = p.waitFor(p.watch.sight)
}

// leave tells the others that the lease is about to be given up, with the next
// renewal, which is now. Renewing goes on for one deadline at most.
func (p *protocol) leave(now Reading, successor string) {
	h := p.held
	if h == nil || h.stopped || h.leaving.begun {
		return
	}
	h.leaving = leaving{begun: true, successor: successor}
	h.until = now.Boot + p.cfg.Deadline
	h.renewAt = now.Boot
}

// stop gives the lease up: this process writes no more.
func (p *protocol) stop(now Reading) {
	if p.held != nil && !p.held.stopped {
		p.held.stopped, p.held.mute = true, false
		p.held.until = now.Boot + 2*(p.cfg.Request+retryPause)
		p.pace.failures, p.pace.writeAt = 0, 0
	}
}

func (p *protocol) lookedHolding(now Reading, s sight) {
	h := p.held
	a, tried := p.tried(s.record)
	ours := s.record.Owner == p.self.owner && s.record.Generation == h.record.Generation
	switch {
	case s.absent:
		p.lose(errVanished)
	case s.broken != nil:
		p.lose(fmt.Errorf("%w: %w", errReplaced, s.broken))
	case tried && ours && a.kind == release:
		p.freed(now, a, s.etag)
	case tried && ours:
		// From when it was sent: others may have waited since it was stored.
		h.etag, h.record, h.sent, h.confirmed = s.etag, s.record, a.sent, a.number
		p.settled()
		p.scheduleRenewal(a.sent.Boot)
		p.expire(now)
	case s.etag == h.etag: // nothing was stored, so far
	case ours && s.record.State == Held:
		h.etag, h.record = s.etag, s.record
		h.renewAt, p.pace = now.Boot, pace{}
	default:
		p.lose(fmt.Errorf("%w: %.100s", errTaken, s.record.Owner))
	}
}
