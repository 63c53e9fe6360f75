package leaser

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-io/tidemark/storage"
)

// ErrCluster is wrapped when the lock is that of other nodes.
var ErrCluster = errors.New("the replica belongs to another cluster")

// errGenerations: the number of generations is part of the file format.
var errGenerations = errors.New("the lock has reached the highest generation")

// watch is what a process without the lease knows of the lock.
type watch struct {
	sight
	seen   bool
	since  Reading       // when the answer came that first showed this ETag
	wait   time.Duration // unchanged for so long, the lock may be taken
	looked time.Duration // boot time of the last answer
}

func (p *protocol) nextWatching(now Reading) (move, time.Duration) {
	if !p.watch.seen || p.pace.owed != none {
		return after(now, p.pace.lookAt, look)
	}
	lookAt := max(p.pace.lookAt, p.watch.looked+p.poll())
	if p.want.compete && p.known < maxGeneration {
		writeAt := max(p.takeAt(now), p.pace.writeAt)
		if p.mayAsk() {
			writeAt = min(writeAt, max(now.Boot, p.pace.writeAt))
		}
		if writeAt <= lookAt {
			return after(now, writeAt, write)
		}
	}
	return after(now, lookAt, look)
}

// poll is shorter when the lease is about to be had.
func (p *protocol) poll() time.Duration {
	r := p.watch.record
	if r.Leaving || r.Request != "" && r.Request == p.self.name {
		return min(fastPoll, p.cfg.Poll)
	}
	return p.cfg.Poll
}

// takeAt is the boot time from which the lock may be taken as it is.
func (p *protocol) takeAt(now Reading) time.Duration {
	w, r := p.watch, p.watch.record
	switch {
	case w.absent, r.State == Released, p.mine(r) && r.State == Held:
		return p.want.after
	case r.State == Handoff && r.Successor == p.self.name:
		return 0
	}
	at := w.since.Boot + w.wait
	// A holder that says it goes on for longer is believed, within reason.
	if left := r.ExpiresAt.Sub(now.Wall); left > 0 {
		at = max(at, min(now.Boot+left, w.since.Boot+2*max(p.cfg.TTL, r.TTL())))
	}
	return max(at, p.want.after)
}

// mine says that the lock is that of an earlier process with this identity,
// which has ended: it had the directory that this one has.
func (p *protocol) mine(r Record) bool {
	return r.Owner == p.self.owner && p.self.boot != "" && r.BootID == p.self.boot
}

func (p *protocol) lookedWatching(now Reading, s sight) error {
	if s.record.Cluster != "" {
		if p.self.cluster == "" {
			p.self.cluster = s.record.Cluster
		}
		if p.self.cluster != s.record.Cluster {
			return fmt.Errorf("%w: its lock names %s, this node belongs to %s", ErrCluster, s.record.Cluster, p.self.cluster)
		}
	}
	if p.known >= maxGeneration {
		return errGenerations
	}
	if a, ok := p.tried(s.record); ok && a.kind == take && now.since(a.sent) < p.cfg.Deadline {
		p.hold(now, a, s.etag)
		return nil
	}
	if w := &p.watch; !w.seen || w.absent != s.absent || w.etag != s.etag {
		*w = watch{sight: s, seen: true, since: now, wait: p.waitFor(s)}
		p.pace = pace{}
	}
	p.watch.looked = now.Boot
	return nil
}

// waitFor is how long the lock must stay as it is. What the service says about
// its past counts: by then its holder had sent it.
func (p *protocol) waitFor(s sight) time.Duration {
	wait := max(p.cfg.Wait, waitFor(s.record.TTL())) + p.luck.within(p.cfg.Jitter)
	if p.cfg.ageCredit() {
		wait = max(0, wait-s.age)
	}
	if s.record.State == Handoff {
		wait += politeness
	}
	return wait
}

func (p *protocol) draftTake(a *attempt) {
	old := p.watch.record
	a.kind = take
	a.record = Record{
		Generation: 1 + max(p.known, old.Generation),
		Seq:        old.Seq + 1,
		Head:       old.Head, // until this process knows better
		Heads:      old.Heads,
		Names:      Names{Fence: old.Fence},
	}
	p.stamp(&a.record, a.sent)
	if p.self.cluster == "" {
		a.record.Cluster = p.luck.nonce() // its name from now on, if this is stored
	}
	a.cond = storage.Condition{Absent: p.watch.absent, ETag: p.watch.etag}
}

// mayAsk says that a holder is to be asked for a handoff that nobody has asked
// it for.
func (p *protocol) mayAsk() bool {
	r := p.watch.record
	return p.want.ask && !p.watch.absent && r.Nonce != "" && r.State == Held && !p.mine(r) && r.Request == "" && !r.Leaving
}

func (p *protocol) draftAsk(a *attempt) {
	a.kind, a.record = ask, p.watch.record
	a.record.Request = p.self.name
	a.record.Seq++
	a.cond = storage.Condition{ETag: p.watch.etag}
}

// asked: the lock is as it was but for the request, so the wait goes on.
func (p *protocol) asked(a attempt, etag string) {
	if p.held == nil && a.cond.ETag == p.watch.etag {
		p.watch.etag, p.watch.record = etag, a.record
	}
	p.pace.failures = 0
}
