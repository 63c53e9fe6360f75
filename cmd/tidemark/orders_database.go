package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
)

// captureNow implements orderable.
func (d *replicated) captureNow(ctx context.Context) (synced, error) {
	p, pos, err := d.capture(ctx)
	if err != nil {
		return synced{}, d.reason(err)
	}
	s := synced{Captured: uint64(pos.TXID), Uploaded: uint64(d.uploaded(p).TXID)}
	files, _ := p.capturer.Spool().Size()
	if s.Complete = files == 0 || s.Uploaded >= s.Captured; s.Complete {
		s.Uploaded = s.Captured
	}
	return s, nil
}

// withKeeper implements orderable.
func (d *replicated) withKeeper(ctx context.Context, do func(context.Context, *keeper) error) error {
	p, err := d.ready(ctx)
	if err != nil {
		return err
	}
	return do(ctx, p.worker)
}

// sync implements orderable. A database that is parked and did not change is
// not opened.
func (s *slot) sync(ctx context.Context) (synced, error) {
	return s.opened(ctx, func(d *replicated) (synced, error) { return d.sync(ctx) })
}

// captureNow implements orderable.
func (s *slot) captureNow(ctx context.Context) (synced, error) {
	return s.opened(ctx, func(d *replicated) (synced, error) { return d.captureNow(ctx) })
}

func (s *slot) opened(ctx context.Context, do func(*replicated) (synced, error)) (synced, error) {
	if err := s.fenced(); err != nil {
		return synced{}, err
	}
	if s.idle() {
		s.mu.Lock()
		p := s.parked
		s.mu.Unlock()
		if p != nil && p.Pos().TXID > 0 {
			txid := uint64(p.Pos().TXID)
			return synced{Captured: txid, Uploaded: txid, Complete: true}, nil
		}
	}
	d, leave, err := s.folder.fleet.tender.enter(ctx, s)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return synced{Uploaded: uint64(s.last.uploaded.TXID)}, s.why(err)
	}
	defer leave()
	return do(d)
}

// withKeeper implements orderable: between two visits, with a worker of its own.
func (s *slot) withKeeper(ctx context.Context, do func(context.Context, *keeper) error) error {
	t := s.folder.fleet.tender
	w, err := t.worker(ctx, s)
	if err != nil {
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !t.borrow(s, w) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	defer t.giveBack(s)
	return do(ctx, w)
}

// borrow takes a place among the visits of a database, if none goes on.
func (t *tender) borrow(s *slot, w *keeper) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.of(s)
	if v.worker != nil {
		return false
	}
	v.worker = w
	return true
}

// giveBack ends what borrow began; what is due then is looked at again.
func (t *tender) giveBack(s *slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.of(s)
	if v.worker != nil && v.worker.Status().Listed {
		v.last = v.worker.Status()
	}
	v.worker = nil
	at := time.Now().Add(time.Second)
	if v.place < 0 {
		v.due = time.Time{}
	}
	t.plan(v, at)
}

// progress says how far the snapshot is that was begun after so many.
func (g *gauge) progress(before int64) string {
	size := humanize.IBytes(uint64(max(0, g.written.Load())))
	switch {
	case g.begun.Load() == before:
		return "waiting for others"
	case g.whole.Load():
		return fmt.Sprintf("uploading %s", size)
	}
	return fmt.Sprintf("%s written", size)
}
