package leaser

import "time"

// simOp is a request of the keeper.
type simOp struct {
	active, landed          bool
	move                    move
	attempt                 attempt
	sent                    Reading
	arrive, answer, timeout time.Duration
	sight                   sight
	etag                    string
	err                     error
}

// run asks the protocol what to do.
func (n *simNode) run() {
	w := n.w
	m, at := n.p.next(n.clock)
	if m == rest {
		n.wake = n.real(at - n.clock.Boot)
		return
	}
	n.op = simOp{active: true, move: m, sent: n.clock}
	limit := w.cfg.Request
	if m == write {
		a, ok := n.p.draft(n.clock, nil)
		if !ok {
			w.violate("the protocol wants a write and drafts none")
		}
		n.op.attempt = a
	} else if n.p.held != nil {
		limit /= 2
	}
	n.op.arrive, n.op.answer = w.travel()
	n.op.timeout = n.real(limit)
	n.log("sends")
}

// log is about the request under way.
func (n *simNode) log(what string) {
	switch o := &n.op; {
	case n.w.trace == nil:
	case o.move == look:
		n.w.log("node %d: look %s: %v", n.id, what, o.err)
	default:
		n.w.log("node %d: %s g%d #%d %s: %v", n.id, o.attempt.kind, o.attempt.record.Generation, o.attempt.number, what, o.err)
	}
}

// travel is when a request arrives and when its answer does.
func (w *world) travel() (arrive, answer time.Duration) {
	if w.chance(w.weather.drop) {
		return never, never
	}
	arrive = w.now + w.within(w.weather.latency)
	if w.chance(w.weather.late) {
		arrive += w.within(25 * time.Second)
	}
	if w.chance(w.weather.lose) {
		return arrive, never
	}
	answer = arrive + w.within(w.weather.latency)
	if w.chance(w.weather.late) {
		answer += w.within(5 * time.Second)
	}
	return arrive, answer
}

func (n *simNode) arrive() {
	o := &n.op
	o.landed = true
	if o.move == look {
		o.sight = n.w.sight()
		return
	}
	o.etag, o.err = n.w.land(o.attempt)
	if n.w.chance(n.w.weather.twice) { // what is between repeats it
		o.etag, o.err = n.w.land(o.attempt)
	}
	n.log("lands")
}

// finish hands an answer, or its absence, to the protocol.
func (n *simNode) finish() {
	o := n.op
	answered := o.landed && o.answer <= n.w.now && (o.timeout > n.w.now || n.w.rng.IntN(2) == 0)
	if !answered {
		n.abandon()
		o.err = errNoAnswer
	}
	n.op.err = o.err
	n.log("ends")
	n.op, n.wake = simOp{}, n.w.now
	if o.move == look {
		n.learn(o)
		return
	}
	if n.w.rules.fromResp {
		o.attempt.sent = n.clock
	}
	if o.err == nil && o.attempt.kind == take && !n.p.watch.absent {
		n.w.met[n.why()] = true
	}
	n.p.wrote(n.clock, o.attempt, o.etag, o.err)
	if n.w.rules.noOwn && o.err != nil && n.p.held != nil && o.attempt.kind == renew {
		n.p.lose(errTaken)
	}
}

// abandon leaves a request that has not arrived to the network.
func (n *simNode) abandon() {
	if o := &n.op; o.active && !o.landed && o.arrive != never && o.move == write {
		a := o.attempt
		n.w.late = append(n.w.late, message{at: o.arrive, from: n, attempt: &a})
	}
}

// why is what entitled the node to take the lease.
func (n *simNode) why() experience {
	switch r := n.p.watch.record; {
	case r.State != Held:
		return handedOver
	case n.p.mine(r):
		return takenBack
	}
	return takenAfterSilence
}

func (n *simNode) learn(o simOp) {
	if o.err != nil {
		n.p.blind(n.clock)
		return
	}
	before := n.p.watch.since
	_, tried := n.p.tried(o.sight.record)
	if err := n.p.looked(n.clock, o.sight); err != nil {
		n.w.violate("node %d: %v", n.id, err)
	}
	n.w.met[adopted] = n.w.met[adopted] || tried && n.p.held != nil
	if n.w.rules.obsFromSend && n.p.watch.since != before {
		n.p.watch.since = o.sent
	}
}
