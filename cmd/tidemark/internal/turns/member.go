package turns

import (
	"cmp"
	"slices"
	"time"
)

// crowd is how long those that were asked to make room are given before more
// are asked: the first ones may be in the middle of something long.
const crowd = 20 * time.Millisecond

type state uint8

const (
	stateIdle    state = iota
	stateWaiting       // in the line
	stateRunning       // has a turn
	statePausing       // for a while
	stateHeld          // by an outage
)

// Member is one of those that take turns. Its methods are safe to call together
// and never block.
type Member struct {
	line *Line
	work Work

	// Guarded by line.mu.
	state state
	woken bool // in its turn
	turn  *Turn
	hold  *hold // whose turn to probe it has
}

// Join makes a member that has nothing to do until it is woken.
func (l *Line) Join(w Work) *Member { return &Member{line: l, work: w} }

// Wake says that there is something to do. A member that has a turn is taken
// for active by it, and gets another turn if it ends without looking; one that
// pauses or is held goes on doing so.
func (m *Member) Wake() {
	m.line.mu.Lock()
	defer m.line.mu.Unlock()
	switch m.state {
	case stateIdle:
		m.line.enqueue(m)
		m.line.wake()
	case stateRunning:
		m.woken, m.turn.touched = true, time.Now()
	}
}

// Turn is the place of a member while it has one.
type Turn struct {
	line   *Line
	member *Member
	wanted chan struct{} // capacity 1

	// Guarded by line.mu.
	touched time.Time
	asked   bool
}

// Wanted tells whether others wait for the place.
func (t *Turn) Wanted() bool {
	t.line.mu.Lock()
	defer t.line.mu.Unlock()
	return t.asked
}

// Asked is signaled when Wanted becomes true.
func (t *Turn) Asked() <-chan struct{} { return t.wanted }

// Probing tells whether the member has its turn to try whether an outage lasts.
func (t *Turn) Probing() bool {
	t.line.mu.Lock()
	defer t.line.mu.Unlock()
	return t.member.hold != nil
}

// Look forgets the wakes so far: what they tell of is looked at now.
func (t *Turn) Look() {
	t.line.mu.Lock()
	defer t.line.mu.Unlock()
	t.member.woken = false
}

// makeRoom asks as many turns to end as others wait, the least recently active
// first, and more when that does not help.
func (l *Line) makeRoom(now time.Time) {
	if len(l.waiting) == 0 {
		l.crowded = time.Time{}
		l.ask(0)
		return
	}
	if l.crowded.IsZero() {
		l.crowded = now
	}
	rounds := int(now.Sub(l.crowded)/crowd) + 1
	want := min(len(l.running), rounds*len(l.waiting))
	l.ask(want)
	if want < len(l.running) {
		l.remind(l.crowded.Add(time.Duration(rounds) * crowd))
	}
}

// ask asks so many turns to end and no others.
func (l *Line) ask(n int) {
	turns := make([]*Turn, 0, len(l.running))
	for t := range l.running {
		turns = append(turns, t)
	}
	if 0 < n && n < len(turns) {
		slices.SortFunc(turns, func(a, b *Turn) int { return cmp.Compare(a.touched.UnixNano(), b.touched.UnixNano()) })
	}
	for i, t := range turns {
		was := t.asked
		if t.asked = i < n; t.asked && !was {
			select {
			case t.wanted <- struct{}{}:
			default:
			}
		}
	}
}
