package leaser

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// wakeful is how often a holder reads its clocks at least: a timer does not
// count the time that the machine sleeps.
const wakeful = 500 * time.Millisecond

// keep does what the protocol asks for, until ctx ends.
func (l *Leaser) keep(ctx context.Context) error {
	for ctx.Err() == nil {
		m, pause := l.plan()
		var err error
		switch m {
		case look:
			err = l.look(ctx)
		case write:
			l.write(ctx)
		default:
			l.pause(ctx, pause)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// plan asks the protocol, and says that a request is about to be made.
func (l *Leaser) plan() (move, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	m, at := l.protocol.next(now)
	l.busy = m != rest
	l.settle()
	pause := at - now.Boot
	if l.protocol.held != nil {
		pause = min(pause, wakeful)
	}
	return m, pause
}

// pause ends early when there is something new to do.
func (l *Leaser) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-l.wake:
	case <-timer.C:
	}
}

// prod makes the keeper ask the protocol again.
func (l *Leaser) prod() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *Leaser) look(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, l.lookTime())
	s, err := l.lock.look(limited)
	cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.settle()
	now := l.clock.Now()
	l.busy = false
	l.story.answered(now, err)
	if err != nil {
		l.protocol.blind(now)
		return nil
	}
	if err := l.protocol.looked(now, s); err != nil {
		return fmt.Errorf("read %s/%s: %w", l.lock.bucket, Key, err)
	}
	l.remember()
	return nil
}

// lookTime leaves a holder time for another write.
func (l *Leaser) lookTime() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.protocol.held != nil {
		return l.cfg.Request / 2
	}
	return l.cfg.Request
}

func (l *Leaser) write(ctx context.Context) {
	if !l.raised(ctx) {
		return
	}
	heads := l.heads()
	l.mu.Lock()
	a, ok := l.protocol.draft(l.clock.Now(), heads)
	l.mu.Unlock()
	if !ok {
		l.idle()
		return
	}
	limited, cancel := context.WithTimeout(ctx, l.cfg.Request)
	etag, err := l.lock.write(limited, a.record, a.cond)
	cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.settle()
	now := l.clock.Now()
	l.busy = false
	l.story.answered(now, err)
	if a.kind == ask {
		l.story.unasked = err
	}
	l.metrics.wrote(a.kind, err)
	l.protocol.wrote(now, a, etag, err)
	l.remember()
}

func (l *Leaser) idle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = false
	l.settle()
}

// raised asks for the highest generation where the lock does not tell it.
func (l *Leaser) raised(ctx context.Context) bool {
	l.mu.Lock()
	unclear := l.protocol.held == nil && (l.protocol.watch.absent || l.protocol.watch.broken != nil)
	l.mu.Unlock()
	if !unclear || l.o.Floor == nil {
		return true
	}
	limited, cancel := context.WithTimeout(ctx, l.cfg.TTL)
	floor, err := l.o.Floor(limited)
	cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.protocol.known = max(l.protocol.known, floor)
		return true
	}
	now := l.clock.Now()
	l.busy = false
	l.story.answered(now, fmt.Errorf("look for the last generation: %w", err))
	l.protocol.pace.writeAt = now.Boot + l.cfg.Poll
	l.settle()
	return false
}

// heads asks the holder what is confirmed.
func (l *Leaser) heads() map[string]Head {
	l.mu.Lock()
	var ask func() map[string]Head
	if l.term != nil {
		ask = l.term.heads
	}
	l.mu.Unlock()
	if ask == nil {
		return nil
	}
	return ask()
}

// remember keeps what the lock told on the node's disk. The lock still has it
// where the disk takes nothing.
func (l *Leaser) remember() {
	p := l.protocol
	cluster := ""
	if p.watch.seen && !p.watch.absent || p.held != nil {
		cluster = p.self.cluster
	}
	if err := l.node.remember(cluster, p.known); err != nil {
		l.story.failed = errors.Join(l.story.failed, err)
	}
}

// guard ends terms in time, whatever requests are under way.
func (l *Leaser) guard(ctx context.Context) error {
	for ctx.Err() == nil {
		left, news := l.expire()
		timer := time.NewTimer(min(left, wakeful))
		select {
		case <-ctx.Done():
		case <-news:
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
}

// expire ends a term that is over, and returns when to look again.
func (l *Leaser) expire() (left time.Duration, news <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	l.story.woke(now)
	l.story.awake = now
	held := l.protocol.held != nil
	l.protocol.expire(now)
	if held && l.protocol.held == nil {
		l.settle()
	}
	if left = l.protocol.remaining(now); left == 0 {
		left = wakeful
	}
	return left, l.news
}
