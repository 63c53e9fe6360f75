package turns

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// One of those that an outage holds up tries again after pauses that grow
// from the first to the last.
const (
	firstProbe = time.Second
	lastProbe  = 15 * time.Second
)

// hold is those that an outage holds up.
type hold struct {
	members []*Member
	pause   time.Duration // before the next one tries
	at      time.Time     // when the next one tries; zero: one does, or there is none
}

// add holds up a member. The pause grows if it is the one that tried again.
func (h *hold) add(m *Member, now time.Time, tried bool) {
	m.state = stateHeld
	h.members = append(h.members, m)
	if tried {
		h.pause = min(2*h.pause, lastProbe)
	}
	if tried || len(h.members) == 1 && h.at.IsZero() {
		h.at = now.Add(h.pause/2 + rand.N(h.pause/2+1))
	}
}

// due takes out the one that is to try now, if any.
func (h *hold) due(now time.Time) *Member {
	if h.at.IsZero() || now.Before(h.at) {
		return nil
	}
	h.at = time.Time{}
	if len(h.members) == 0 {
		return nil
	}
	m := h.members[0]
	h.members[0], h.members = nil, h.members[1:]
	m.hold = h
	return m
}

// pauses are the members that pause, the next one first.
type pauses []pause

type pause struct {
	until  time.Time
	member *Member
}

func (p *pauses) add(m *Member, until time.Time) { heap.Push(p, pause{until, m}) }

// due takes out a member whose pause is over, if any.
func (p *pauses) due(now time.Time) *Member {
	if len(*p) == 0 || now.Before((*p)[0].until) {
		return nil
	}
	return heap.Pop(p).(pause).member
}

// first is when the next pause is over; zero: nobody pauses.
func (p *pauses) first() time.Time {
	if len(*p) == 0 {
		return time.Time{}
	}
	return (*p)[0].until
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (p *pauses) Len() int           { return len(*p) }
func (p *pauses) Less(i, j int) bool { return (*p)[i].until.Before((*p)[j].until) }
func (p *pauses) Swap(i, j int)      { (*p)[i], (*p)[j] = (*p)[j], (*p)[i] }

// Push implements heap.Interface.
func (p *pauses) Push(x any) { *p = append(*p, x.(pause)) }

// Pop implements heap.Interface.
func (p *pauses) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}
