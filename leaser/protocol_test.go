package leaser

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/storage"
)

// holder is a protocol that has just acquired the lease, at the time it
// returns. Nonces are n1, n2 and so on.
func holder(t *testing.T) (*protocol, Reading) {
	t.Helper()
	nonces := 0
	p := &protocol{
		cfg:  DefaultConfig(),
		self: self{name: "me", owner: "me/1", boot: "boot"},
		luck: luck{
			within: func(d time.Duration) time.Duration { return d / 2 },
			nonce:  func() string { nonces++; return fmt.Sprint("n", nonces) },
		},
	}
	p.want.compete = true
	now := Reading{Boot: time.Hour, Wall: time.Unix(1e9, 0)}
	if err := p.looked(now, sight{absent: true}); err != nil {
		t.Fatal(err)
	}
	p.wrote(now, mustDraft(t, p, now), "e1", nil)
	if p.held == nil {
		t.Fatal("not held")
	}
	return p, now
}

func (r Reading) plus(d time.Duration) Reading { return Reading{r.Boot + d, r.Wall.Add(d)} }

func mustDraft(t *testing.T, p *protocol, now Reading) attempt {
	t.Helper()
	a, ok := p.draft(now, nil)
	if !ok {
		m, at := p.next(now)
		t.Fatalf("nothing to write: %v until %v", m, at-now.Boot)
	}
	return a
}

func wantMove(t *testing.T, p *protocol, now Reading, want move) {
	t.Helper()
	if m, at := p.next(now); m != want {
		t.Fatalf("next is %v at %v, want %v", m, at-now.Boot, want)
	}
}

func TestTheDeadlineCountsFromTheSending(t *testing.T) {
	p, now := holder(t)
	sent := now.plus(4 * time.Second)
	a := mustDraft(t, p, sent)
	p.wrote(sent.plus(1900*time.Millisecond), a, "e2", nil)
	if left := p.remaining(sent.plus(2 * time.Second)); left != 8*time.Second {
		t.Errorf("%v remain 2 s after the sending", left)
	}
}

func TestAnAdoptedWriteCountsFromItsOwnSending(t *testing.T) {
	p, now := holder(t)
	first := now.plus(4 * time.Second)
	a := mustDraft(t, p, first)
	p.wrote(first.plus(2*time.Second), a, "", errors.New("time-out"))
	p.blind(first.plus(3 * time.Second))
	second := first.plus(3 * time.Second)
	b := mustDraft(t, p, second)
	p.wrote(second, b, "", storage.ErrPrecondition)
	wantMove(t, p, second, look)
	if err := p.looked(second, sight{etag: "e2", record: a.record}); err != nil {
		t.Fatal(err)
	}
	if left := p.remaining(second); left != 7*time.Second {
		t.Errorf("%v remain, want 10 s from the first sending", left)
	}
	if p.held.etag != "e2" || p.held.confirmed != a.number {
		t.Errorf("etag %s, confirmed %d", p.held.etag, p.held.confirmed)
	}
}

func TestAForgottenWriteIsAdoptedWithoutTime(t *testing.T) {
	p, now := holder(t)
	at := now.plus(4 * time.Second)
	first := mustDraft(t, p, at)
	p.wrote(at, first, "", errors.New("time-out"))
	for range remembered {
		at = at.plus(time.Second / 2)
		p.held.sent = at // keeps the term alive
		p.blind(at)
		p.pace.writeAt = 0
		p.held.renewAt = 0
		p.wrote(at, mustDraft(t, p, at), "", errors.New("time-out"))
	}
	if _, ok := p.tried(first.record); ok || len(p.tries) != remembered {
		t.Fatalf("%d attempts are remembered", len(p.tries))
	}
	before, confirmed := p.remaining(at), p.held.confirmed
	if err := p.looked(at, sight{etag: "e2", record: first.record}); err != nil {
		t.Fatal(err)
	}
	if p.held == nil || p.held.etag != "e2" || p.remaining(at) != before || p.held.confirmed != confirmed {
		t.Errorf("held %+v, %v remain", p.held, p.remaining(at))
	}
}

func TestAnUnchangedLockIsWrittenAgain(t *testing.T) {
	p, now := holder(t)
	at := now.plus(4 * time.Second)
	p.wrote(at, mustDraft(t, p, at), "", errors.New("409"))
	wantMove(t, p, at, look)
	if err := p.looked(at, sight{etag: "e1", record: p.held.record}); err != nil {
		t.Fatal(err)
	}
	wantMove(t, p, at.plus(499*time.Millisecond), rest)
	again := at.plus(retryPause)
	a := mustDraft(t, p, again)
	if a.cond.ETag != "e1" || a.kind != renew {
		t.Errorf("got %+v", a)
	}
	p.wrote(again, a, "", errors.New("500"))
	if err := p.looked(again, sight{etag: "e1", record: p.held.record}); err != nil {
		t.Fatal(err)
	}
	wantMove(t, p, again.plus(999*time.Millisecond), rest)
	wantMove(t, p, again.plus(time.Second), write)
}

func TestTwoAttemptsFitBeforeTheDeadline(t *testing.T) {
	p, now := holder(t)
	p.held.renewAt = now.Boot + p.cfg.lateRenewal()
	at, attempts := now, 0
	for p.held != nil {
		m, until := p.next(at)
		switch m {
		case look:
			at = at.plus(p.cfg.Request / 2)
			p.blind(at)
		case write:
			a := mustDraft(t, p, at)
			at = at.plus(p.cfg.Request)
			if p.valid(at) {
				attempts++
			}
			p.wrote(at, a, "", errors.New("time-out"))
		default:
			at = at.plus(until - at.Boot)
		}
	}
	if attempts < 2 || !errors.Is(p.lost, errDeadline) {
		t.Errorf("%d attempts ended in time: %v", attempts, p.lost)
	}
}

func TestEveryWriteIsNew(t *testing.T) {
	p, now := holder(t)
	seen := map[string]bool{p.held.record.Nonce: true}
	seq := p.held.record.Seq
	for i := range 20 {
		now = now.plus(5 * time.Second)
		a := mustDraft(t, p, now)
		if seen[a.record.Nonce] || a.record.Seq != seq+1 {
			t.Fatalf("nonce %s, seq %d after %d", a.record.Nonce, a.record.Seq, seq)
		}
		seen[a.record.Nonce], seq = true, a.record.Seq
		p.wrote(now, a, fmt.Sprint("e", i), nil)
	}
}
