package leaser

import (
	"fmt"
	"time"
)

// txids is the highest TXID of a schedule.
const txids = 6

// value is the content of one transaction. Its number is its identity.
type value struct {
	generation uint64 // that made it
	parent     int    // what it was built upon
	fence      bool   // no data of the application
}

// history is the replica, and what an onlooker knows about it. Index 0 of each
// array is the empty database.
type history struct {
	values []value
	l0, l1 [txids + 2]int
	l1max  int
	chain  [txids + 2]int // the first value ever stored at each TXID
}

// dataPut is an upload to level 0.
type dataPut struct{ txid, value int }

func (p dataPut) String() string { return fmt.Sprintf("%d=v%d", p.txid, p.value) }

func (h *history) generation(value int) uint64 { return h.values[value].generation }

func (h *history) make(v value) int {
	h.values = append(h.values, v)
	return len(h.values) - 1
}

// store is the bucket's side of an upload.
func (w *world) store(p dataPut) bool {
	h := &w.history
	if h.l0[p.txid] != 0 && !w.rules.plainPut {
		return false
	}
	h.l0[p.txid] = p.value
	before := h.chain[p.txid-1]
	switch {
	case h.chain[p.txid] == 0:
		if p.txid > 1 && before == 0 {
			w.violate("gap before %v", p)
		}
		if h.values[p.value].parent != before {
			w.violate("%v is not built on what precedes it", p)
		}
		if h.generation(p.value) < h.generation(before) {
			w.violate("%v of generation %d follows generation %d", p, h.generation(p.value), h.generation(before))
		}
		h.chain[p.txid] = p.value
	case h.chain[p.txid] != p.value && p.txid > h.l1max:
		w.violate("fork: %v beside v%d", p, h.chain[p.txid])
	case h.chain[p.txid] != p.value:
		w.met[stray] = true
	}
	return true
}

// view is what a reader takes for a TXID: the highest level that covers it.
func (w *world) view(txid int) int {
	h := &w.history
	if w.rules.l0First && h.l0[txid] != 0 {
		return h.l0[txid]
	}
	if txid <= h.l1max {
		return h.l1[txid]
	}
	return h.l0[txid]
}

// mayErase says whether retention may remove an object of level 0.
func (w *world) mayErase(t int) bool {
	h := &w.history
	if h.l0[t] == 0 || t > h.l1max || h.chain[t+1] == 0 && !w.rules.delNewest {
		return false
	}
	first := h.generation(h.chain[t]) != h.generation(h.chain[t-1])
	switch {
	case w.rules.dropFence:
		return true
	case w.rules.keepLastFence:
		return !first || h.generation(h.chain[t]) != w.lock.record.Generation
	}
	return !first
}

func (w *world) erase() {
	t := 1 + w.rng.IntN(txids)
	if w.mayErase(t) {
		w.history.l0[t] = 0
		w.log("level 0 object %d is deleted", t)
	}
}

// phase is how far a node has come with its term.
type phase int

const (
	following phase = iota
	acquired        // must drain
	drained         // must store its fence
	fencePut        // must look again
	verified        // must confirm
	serving
)

// local is a node's database and what it knows of the replica.
type local struct {
	n        *simNode
	phase    phase
	term     *held
	gen      uint64
	loc      [txids + 2]int
	ln       int // last local TXID
	up, ackd int // last uploaded and last confirmed one
	wake     time.Duration
	put      dataPut // under way or to be compared; zero: none
	unclear  bool    // it was refused: compare
	flight   flight
	confirm  confirmation
}

// flight is the way of an upload.
type flight struct {
	active, landed, stored  bool
	arrive, answer, timeout time.Duration
}

// confirmation waits for a renewal sent after it began.
type confirmation struct {
	active bool
	after  uint64
	up     int
}

// restart keeps the database alone.
func (d *local) restart(n *simNode) {
	*d = local{n: n, loc: d.loc, ln: d.ln, wake: n.w.now}
}

func (d *local) due() time.Duration {
	if d.phase == following && (d.n.p.held == nil || d.n.p.held.stopped) {
		return never
	}
	if d.flight.active {
		return min(d.wake, d.flight.answer, d.flight.timeout)
	}
	return d.wake
}

// arrival is when an upload reaches the bucket.
func (d *local) arrival() time.Duration {
	if d.flight.active && !d.flight.landed {
		return d.flight.arrive
	}
	return never
}

func (d *local) arrive() {
	d.flight.landed = true
	d.flight.stored = d.n.w.store(d.put)
	d.n.w.log("node %d: put %v lands: %v", d.n.id, d.put, d.flight.stored)
}

// giveUp forgets an upload, which may land yet.
func (d *local) giveUp() {
	if f := d.flight; f.active && !f.landed && f.arrive != never {
		d.n.w.late = append(d.n.w.late, message{at: f.arrive, from: d.n, put: d.put})
	}
	d.flight, d.put, d.unclear = flight{}, dataPut{}, false
}

// stop ends the application; the term may go on.
func (d *local) stop() {
	d.giveUp()
	d.phase, d.gen, d.up, d.ackd, d.confirm = following, 0, 0, 0, confirmation{}
}

// resign gives the lease up.
func (d *local) resign() {
	d.n.w.log("node %d gives up as generation %d", d.n.id, d.gen)
	d.n.quit()
}

func (d *local) act() {
	w, p := d.n.w, d.n.p
	d.wake = w.now + 1 + w.within(w.weather.pace)
	if w.chance(w.weather.dawdle) {
		d.wake += w.within(15 * time.Second)
	}
	if d.phase != following && d.term != p.held {
		d.stop()
	}
	if p.held == nil || p.held.stopped {
		return
	}
	if d.phase == following {
		d.phase, d.term, d.gen = acquired, p.held, p.held.record.Generation
	}
	if f := d.flight; f.active && min(f.answer, f.timeout) <= w.now {
		d.answered()
		return
	}
	if d.unclear {
		d.compare()
		return
	}
	d.proceed()
}

func (d *local) proceed() {
	switch d.phase {
	case acquired:
		d.phase = drained
		d.drain()
	case drained:
		d.fence()
	case fencePut:
		d.look()
	case verified:
		d.confirmed(func() { d.phase = serving })
	case serving:
		d.serve()
	}
}

// confirmed calls then once a renewal sent after the first call was stored.
func (d *local) confirmed(then func()) {
	p := d.n.p
	if !d.confirm.active {
		d.confirm = confirmation{active: true, after: p.number, up: d.up}
		p.held.wanted = max(p.held.wanted, p.number)
		if !d.n.op.active {
			d.n.wake = d.n.w.now
		}
		return
	}
	if p.held.confirmed > d.confirm.after {
		d.confirm.active = false
		then()
	}
}
