package leaser

import "time"

// drain compares the local history with the replica's. A local tail stays as
// long as the replica has nothing different.
func (d *local) drain() {
	w := d.n.w
	h := &w.history
	k := 1
	for ; k <= txids && w.view(k) != 0; k++ {
		seen := w.view(k)
		if seen != h.chain[k] {
			w.violate("node %d reads v%d at %d, which is v%d", d.n.id, seen, k, h.chain[k])
		}
		if k <= d.ln && d.loc[k] != seen {
			d.setAside(k)
		}
		if k > d.ln {
			d.loc[k], d.ln = seen, k
		}
	}
	if k <= txids && h.chain[k] != 0 {
		w.violate("node %d does not find %d, which was published", d.n.id, k)
	}
	d.up = k - 1
	w.log("node %d drains to %d as generation %d", d.n.id, d.up, d.gen)
	if !w.rules.noGenCheck && d.up > 0 && h.generation(w.view(d.up)) > d.gen {
		d.resign()
	}
}

// setAside puts local transactions from k on into quarantine.
func (d *local) setAside(k int) {
	d.n.w.met[setAside] = true
	for j := k; j <= d.ln; j++ {
		if d.n.w.history.chain[j] == d.loc[j] {
			d.n.w.violate("node %d sets %d aside, which is published", d.n.id, j)
		}
		d.loc[j] = 0
	}
	d.ln = k - 1
}

// fence uploads the local tail and after it an object without data.
func (d *local) fence() {
	w := d.n.w
	switch {
	case w.rules.noFence && d.up == d.ln:
		d.afterFence()
		return
	case d.flight.active || d.up == d.ln && d.ln == txids:
		return
	case d.up == d.ln:
		d.append(true)
	}
	d.send(d.up + 1)
}

func (d *local) append(fence bool) {
	d.ln++
	d.loc[d.ln] = d.n.w.history.make(value{generation: d.gen, parent: d.loc[d.ln-1], fence: fence})
}

func (d *local) afterFence() {
	d.phase = verified
	if d.n.w.weather.verify {
		d.phase = fencePut
	}
}

func (d *local) send(txid int) {
	w := d.n.w
	if !w.rules.anyTime && !d.n.believes() {
		return // what holds every write back
	}
	d.put = dataPut{txid, d.loc[txid]}
	f := flight{active: true, timeout: d.n.real(2*time.Second + w.within(5*time.Second))}
	f.arrive, f.answer = w.travel()
	d.flight = f
	w.log("node %d puts %v as generation %d", d.n.id, d.put, d.gen)
}

// answered deals with the answer to an upload, or its absence.
func (d *local) answered() {
	w, f := d.n.w, d.flight
	switch {
	case !f.landed || f.answer > w.now:
		d.giveUp()
	case f.stored:
		d.uploaded()
	case w.rules.noOwn412:
		d.foreign()
	case w.rules.own412Always:
		d.uploaded()
	default:
		d.flight, d.unclear = flight{}, true
	}
}

// compare reads what is under the name of a refused upload.
func (d *local) compare() {
	switch d.n.w.history.l0[d.put.txid] {
	case d.put.value:
		d.uploaded()
	case 0:
		d.unclear = false
	default:
		d.foreign()
	}
}

func (d *local) uploaded() {
	w := d.n.w
	if !w.rules.pipeline || d.put.txid == d.up+1 {
		d.up = d.put.txid
	}
	d.flight, d.put, d.unclear = flight{}, dataPut{}, false
	own := w.history.generation(d.loc[d.ln]) == d.gen
	if d.phase == drained && d.up == d.ln && (own || w.rules.tailIsFence) {
		d.afterFence()
	}
	if w.rules.noConfirm && d.phase == serving {
		d.acknowledge(d.up)
	}
}

// foreign: another object is where this node's was to be.
func (d *local) foreign() {
	w, put := d.n.w, d.put
	d.flight, d.put, d.unclear = flight{}, dataPut{}, false
	w.log("node %d meets a foreign object at %d", d.n.id, put.txid)
	if d.phase == drained {
		d.dropFence()
		d.phase = acquired
		return
	}
	if w.lock.record.Generation == d.gen {
		w.violate("node %d is fenced, but holds the lease", d.n.id)
	}
	d.stop()
	d.n.p.lose(errTaken)
	d.n.seen = nil
}

// dropFence takes the own fence back out of the local history.
func (d *local) dropFence() {
	if v := d.n.w.history.values[d.loc[d.ln]]; d.ln > 0 && v.fence && v.generation == d.gen {
		d.loc[d.ln] = 0
		d.ln--
	}
}

// look makes sure that nothing covers or follows the fence.
func (d *local) look() {
	h := &d.n.w.history
	if h.l1max < d.up && h.l0[d.up+1] == 0 {
		d.phase = verified
		return
	}
	d.n.w.log("node %d finds that its fence is in a hole", d.n.id)
	d.n.w.met[hole] = true
	d.dropFence()
	d.phase = acquired
}

func (d *local) acknowledge(upTo int) {
	for j := 1; j <= upTo; j++ {
		if d.n.w.history.chain[j] != d.loc[j] {
			d.n.w.violate("node %d acknowledged %d, which is not in the history", d.n.id, j)
		}
	}
	d.ackd = upTo
}

// serve does what a primary does with its data, one thing at a time.
func (d *local) serve() {
	w := d.n.w
	if d.confirm.active {
		d.confirmed(func() { d.acknowledge(d.confirm.up) })
	}
	if w.chance(w.weather.erase) {
		w.erase()
	}
	if w.chance(w.weather.compact) {
		d.compact()
	}
	if d.ln < txids && w.rng.IntN(2) == 0 {
		d.append(false)
		w.log("node %d commits %d as v%d", d.n.id, d.ln, d.loc[d.ln])
	}
	switch {
	case !d.flight.active && d.up < d.ln:
		d.send(d.up + 1)
	case d.flight.active && w.rules.pipeline && d.put.txid < d.ln:
		next := d.put.txid + 1
		d.giveUp()
		d.send(next)
	case !d.confirm.active && d.ackd < d.up && !w.rules.noConfirm:
		d.confirmed(nil)
	}
}

func (d *local) compact() {
	w := d.n.w
	limit := d.ackd
	switch {
	case w.rules.naiveCompact:
		limit = d.ln
	case w.rules.compactUp, w.rules.noConfirm:
		limit = d.up
	}
	h := &w.history
	if h.l1max >= limit {
		return
	}
	h.l1max++
	h.l1[h.l1max] = d.loc[h.l1max]
	w.log("node %d compacts %d", d.n.id, h.l1max)
	if h.l1[h.l1max] != h.chain[h.l1max] {
		w.violate("node %d compacts %d from something else than the chain", d.n.id, h.l1max)
	}
}
