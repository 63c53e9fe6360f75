package leaser

import (
	"errors"
	"fmt"
	"time"
)

// simNode is one process around the protocol.
type simNode struct {
	w    *world
	id   int
	boot int // restarts of the machine
	p    *protocol

	rate        int64 // of its clocks, in parts of 1000
	clock       Reading
	frozen      time.Duration // real time until which it does nothing
	keeperStall time.Duration // as long as its keeper alone does nothing
	wake        time.Duration
	op          simOp
	writesUntil time.Duration // its application may run until then
	data        local
	seen        *held // the term as it was after the last event
}

func (w *world) newNode(id int) *simNode {
	n := &simNode{w: w, id: id, rate: 900 + 200*w.rng.Int64N(2)}
	if w.rng.IntN(2) == 0 {
		n.rate = 900 + w.rng.Int64N(201)
	}
	n.clock = Reading{Boot: time.Hour + w.within(time.Hour), Wall: time.Unix(1e9, 0).Add(w.within(2 * time.Minute))}
	n.start()
	return n
}

// start begins a process that knows nothing.
func (n *simNode) start() {
	name := fmt.Sprint("node", n.id)
	n.p = &protocol{
		cfg:  n.w.cfg,
		self: self{name: name, owner: name, boot: fmt.Sprint(name, n.boot), cluster: "c"},
		luck: luck{within: n.w.within, nonce: n.w.nonce},
	}
	n.p.want.compete = true
	n.wake = n.w.now + n.w.within(time.Second)
	n.data.restart(n)
}

// pass lets time go by.
func (n *simNode) pass(d time.Duration) {
	if n.w.rules.suspend && n.frozen > n.w.now {
		d = max(0, n.w.now+d-n.frozen)
	}
	d = d * time.Duration(n.rate) / 1000
	n.clock.Boot += d
	n.clock.Wall = n.clock.Wall.Add(d)
}

// real is the real time after which d has passed on the node's clock.
func (n *simNode) real(d time.Duration) time.Duration {
	return n.w.now + max(0, d)*1000/time.Duration(n.rate) + 1
}

// due is when the node does something next.
func (n *simNode) due() time.Duration {
	keeper := n.wake
	if n.op.active {
		keeper = min(n.op.answer, n.op.timeout)
	}
	keeper = max(keeper, n.keeperStall)
	at := max(n.frozen, min(keeper, n.data.due()))
	if n.op.active && !n.op.landed {
		at = min(at, n.op.arrive) // the bucket does not wait for the node
	}
	return min(at, n.data.arrival())
}

func (n *simNode) act() {
	w := n.w
	if n.op.active && !n.op.landed && n.op.arrive <= w.now {
		n.arrive()
		return
	}
	if n.data.arrival() <= w.now {
		n.data.arrive()
		return
	}
	if n.hazard() {
		return
	}
	n.bend()
	switch {
	case n.keeperStall > w.now || !n.keeperDue():
		n.data.act()
	case n.op.active:
		n.finish()
	default:
		n.run()
	}
	n.follow()
}

func (n *simNode) keeperDue() bool {
	if n.op.active {
		return min(n.op.answer, n.op.timeout) <= n.w.now
	}
	return n.wake <= n.w.now
}

// hazard may befall a node instead of what it was about to do.
func (n *simNode) hazard() bool {
	w := n.w
	switch {
	case w.chance(w.weather.freeze):
		n.frozen = w.now + w.within(30*time.Second)
		w.log("node %d freezes until %v", n.id, n.frozen)
	case w.chance(w.weather.crash):
		n.crash()
	case w.chance(w.weather.ask):
		n.p.want.ask, n.p.want.after = !n.p.want.ask, 0
	case w.chance(w.weather.jump):
		jump := w.within(time.Minute) - 30*time.Second
		n.clock.Wall = n.clock.Wall.Add(jump)
		w.log("node %d wall clock jumps by %v", n.id, jump)
	default:
		return false
	}
	return true
}

// crash ends the process; what it has sent is on its way.
func (n *simNode) crash() {
	n.abandon()
	n.op = simOp{}
	n.data.giveUp()
	if n.w.rng.IntN(3) == 0 {
		n.boot++
	}
	n.w.log("node %d crashes, boot %d", n.id, n.boot)
	n.start()
	n.seen, n.writesUntil = nil, n.w.now
	n.frozen = n.w.now + n.w.within(5*time.Second)
}

// bend makes the node break the rules that are off, before it acts.
func (n *simNode) bend() {
	r, p := n.w.rules, n.p
	if (r.noDeadline || r.anyTime) && p.held != nil {
		p.held.sent = n.clock
	}
	if r.adoptFull {
		for i := range p.tries {
			p.tries[i].sent = n.clock
		}
	}
	if r.anyTime && n.w.chance(n.w.weather.impatient) || r.trustRemote && !p.watch.record.ExpiresAt.After(n.clock.Wall) {
		p.watch.wait, p.watch.record.ExpiresAt = 0, time.Time{}
		n.wake = n.w.now
	}
	if r.anyTime && n.w.chance(n.w.weather.stall) {
		n.keeperStall = n.w.now + n.w.within(10*time.Second)
	}
}

// follow watches what became of the term.
func (n *simNode) follow() {
	p, w := n.p, n.w
	if was := n.seen; was != nil && p.held != was {
		mine := w.lock.present && w.lock.record.Owner == p.self.owner && w.lock.record.State == Held &&
			w.lock.record.Generation == was.record.Generation
		if mine && p.lost != nil && !errors.Is(p.lost, errDeadline) && !errors.Is(p.lost, errGivenUp) {
			w.violate("node %d gives its own lease up: %v", n.id, p.lost)
		}
		w.met[outlived] = w.met[outlived] || errors.Is(p.lost, errDeadline)
	}
	if n.seen = p.held; p.held == nil {
		return
	}
	if left := p.remaining(n.clock); left > 0 {
		n.writesUntil = n.real(left + w.cfg.Stop)
	}
	n.handOver()
}

// handOver lets the node step down: by chance, or because it is asked to.
func (n *simNode) handOver() {
	p, w := n.p, n.w
	switch request := p.held.record.Request; {
	case p.held.stopped:
	case p.held.leaving.begun && w.rng.IntN(4) == 0:
		w.log("node %d has stopped", n.id)
		n.quit()
	case p.held.leaving.begun:
	case request != "":
		w.log("node %d is asked to hand over to %s", n.id, request)
		p.leave(n.clock, request)
	case w.chance(w.weather.stepDown):
		successor := ""
		if to := w.nodes[w.rng.IntN(len(w.nodes))]; to != n && w.rng.IntN(2) == 0 {
			successor = to.p.self.name
		}
		w.log("node %d steps down for %q", n.id, successor)
		p.leave(n.clock, successor)
	}
}

// quit stops the application, and then gives the lease up.
func (n *simNode) quit() {
	n.data.stop()
	n.p.stop(n.clock)
	n.p.want.after = n.clock.Boot + coolOff
	n.wake, n.writesUntil = n.w.now, n.w.now
}

// believes says that the node lets its application write.
func (n *simNode) believes() bool {
	if n.w.rules.releaseEarly && n.p.held != nil && n.p.held.stopped {
		return n.clock.since(n.p.held.sent) < n.w.cfg.Deadline
	}
	if n.w.rules.noDeadline && n.p.held != nil {
		return !n.p.held.stopped
	}
	return n.p.valid(n.clock)
}
