package leaser

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tidemark-io/tidemark/storage"
)

const never = time.Duration(1<<62 - 1)

var errNoAnswer = errors.New("no answer")

// rules says which rules a simulation leaves out. The zero value keeps all.
type rules struct {
	// of belief
	trustRemote, noOwn, noDeadline, suspend, adoptFull, noNonce, fromResp, obsFromSend, releaseEarly, deleteUncond, margin bool
	// of the history
	plainPut, pipeline, noFence, noOwn412, own412Always, naiveCompact, compactUp, noGenCheck, tailIsFence bool
	noConfirm, dropFence, keepLastFence, delNewest, l0First                                               bool
	// anyTime breaks every clock: nodes take the lease whenever they like and
	// never notice that their time is over. Belief is then not checked.
	anyTime bool
	verify  tristate // R8
}

type tristate int

const (
	maybe tristate = iota
	yes
	no
)

// weather is how bad one schedule is. Each has its own.
type weather struct {
	latency                                  time.Duration
	lose, drop, late, twice                  int // of 1000 requests: reply lost, request lost, lands late, sent twice
	freeze, crash, stepDown, jump, ask       int // of 1000 rounds of a node
	impatient, stall, dawdle, compact, erase int // of 1000
	credit, verify                           bool
	pace                                     time.Duration // of the work on data
}

// world is one schedule: nodes with clocks of their own around one bucket.
type world struct {
	rng     *rand.Rand
	rules   rules
	weather weather
	cfg     Config
	now     time.Duration // real time
	nonces  uint64
	lock    simLock
	history history
	nodes   []*simNode
	late    []message
	broken  string // what was violated
	trace   func(string, ...any)
	met     [sights]bool
}

// experience is something a schedule should come across now and then.
type experience int

const (
	takenAfterSilence experience = iota
	takenBack
	handedOver
	adopted  // a write whose answer was lost
	landed   // a write of the lock that its sender had given up
	outlived // the deadline
	setAside // local transactions that are not in the replica
	stray    // an object stored below what is compacted
	hole     // that a fence was stored in
	sights
)

func (e experience) String() string {
	return [...]string{"taken after silence", "taken back", "handed over", "adopted", "landed late", "deadline over",
		"set aside", "stray object", "fence in a hole"}[e]
}

// simLock is a linearizable object.
type simLock struct {
	present bool
	etag    string
	count   int
	record  Record
	written time.Duration
}

// message is a request that its sender has given up, and that may land yet.
type message struct {
	at      time.Duration
	from    *simNode
	attempt *attempt
	put     dataPut
}

// simulate runs one schedule and returns what it violated and came across.
func simulate(seed uint64, r rules, trace func(string, ...any)) (broken string, met [sights]bool) {
	w := &world{rng: rand.New(rand.NewPCG(seed, 7)), rules: r, trace: trace}
	w.weather = w.forecast()
	w.cfg = DefaultConfig()
	w.cfg.AgeCredit = &w.weather.credit
	if r.margin {
		w.cfg.Deadline, w.cfg.TTL = 25*time.Second, 25*time.Second
	}
	w.history.values = make([]value, 1, 16)
	for i := range 2 + w.rng.IntN(2) {
		w.nodes = append(w.nodes, w.newNode(i))
	}
	for range 400 {
		if !w.step() || w.broken != "" || w.now > 150*time.Second {
			break
		}
	}
	return w.broken, w.met
}

// forecast draws a schedule's weather: each hazard is often absent.
func (w *world) forecast() weather {
	some := func(most int) int {
		if w.rng.IntN(2) == 0 {
			return 0
		}
		return 1 + w.rng.IntN(most)
	}
	f := weather{
		latency: time.Duration(20+w.rng.IntN(600)*(1+w.rng.IntN(3))) * time.Millisecond,
		lose:    some(300), drop: some(200), late: some(300), twice: some(100),
		freeze: some(60), crash: some(25), stepDown: some(40), jump: some(20), ask: some(10),
		impatient: 100 + some(400), stall: some(500), compact: 200 + some(500), erase: 100 + some(800),
		credit: w.rng.IntN(2) == 0, verify: w.rng.IntN(2) == 0,
		pace: time.Duration(50+w.rng.IntN(1500)) * time.Millisecond,
	}
	if w.rules.anyTime {
		f.jump, f.ask, f.stepDown = 0, 0, f.stepDown/4
		f.stall, f.dawdle, f.compact, f.erase = some(700), some(300), 300+some(700), 300+some(700)
		f.latency /= 2
	}
	switch w.rules.verify {
	case yes:
		f.verify = true
	case no:
		f.verify = false
	}
	return f
}

func (w *world) chance(ofThousand int) bool { return ofThousand > 0 && w.rng.IntN(1000) < ofThousand }

func (w *world) within(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(w.rng.Int64N(int64(d)))
}

func (w *world) nonce() string {
	w.nonces++
	return strconv.FormatUint(w.nonces, 10)
}

func (w *world) violate(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
	}
	w.log("VIOLATED: "+format, args...)
}

func (w *world) log(format string, args ...any) {
	if w.trace != nil {
		w.trace("%8.3f  "+format, append([]any{w.now.Seconds()}, args...)...)
	}
}

// step goes to the next thing that happens, and lets it.
func (w *world) step() bool {
	at := never
	for _, n := range w.nodes {
		at = min(at, n.due())
	}
	for _, m := range w.late {
		at = min(at, m.at)
	}
	if at == never {
		return false
	}
	w.advance(max(at, w.now))
	for i, m := range w.late {
		if m.at <= w.now {
			w.late = append(w.late[:i], w.late[i+1:]...)
			w.landLate(m)
			return true
		}
	}
	for _, n := range w.nodes {
		if n.due() <= w.now {
			n.act()
			break
		}
	}
	w.checkBelief()
	return true
}

func (w *world) advance(to time.Duration) {
	for _, n := range w.nodes {
		n.pass(to - w.now)
	}
	w.now = to
}

func (w *world) landLate(m message) {
	if m.attempt != nil {
		_, err := w.land(*m.attempt)
		w.met[landed] = w.met[landed] || err == nil
		w.log("late %s of node %d lands: %v", m.attempt.kind, m.from.id, err)
		return
	}
	ok := w.store(m.put)
	w.log("late put %v of node %d lands: %v", m.put, m.from.id, ok)
}

// land is the bucket's side of a write of the lock.
func (w *world) land(a attempt) (etag string, err error) {
	l := &w.lock
	if a.kind == release && w.rules.deleteUncond {
		*l = simLock{count: l.count}
		return "deleted", nil
	}
	if a.cond.Absent == l.present || !a.cond.Absent && a.cond.ETag != l.etag {
		return "", storage.ErrPrecondition
	}
	l.count++
	l.present, l.record, l.written, l.etag = true, a.record, w.now, strconv.Itoa(l.count)
	if w.rules.noNonce {
		l.etag = fmt.Sprint(a.record.Generation, a.record.Owner, a.record.State)
	}
	return l.etag, nil
}

func (w *world) sight() sight {
	if !w.lock.present {
		return sight{absent: true}
	}
	const second = time.Second
	age := w.now.Truncate(second) - w.lock.written.Truncate(second) - second
	return sight{etag: w.lock.etag, record: w.lock.record, age: max(0, age)}
}

// checkBelief: no two nodes may write at once.
func (w *world) checkBelief() {
	if w.rules.anyTime {
		return
	}
	believer := -1
	for i, n := range w.nodes {
		if !n.believes() {
			continue
		}
		for j, other := range w.nodes {
			if i != j && w.now < other.writesUntil && !other.believes() {
				w.violate("node %d may write while node %d may not have stopped", i, j)
			}
		}
		if believer >= 0 {
			w.violate("nodes %d and %d may write at once", believer, i)
		}
		believer = i
	}
}
