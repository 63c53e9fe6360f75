package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/leaser"
	"github.com/tidemark-io/tidemark/replica"
)

// leased is what a database is given by the lease of its node. Nothing that is
// uploaded is relied upon before the lease was renewed after it: until then
// another node may have become the primary without it.
type leased struct {
	id      uint64                                         // of the node and its generation, for the headers of files
	bring   func(context.Context) (*capture.Parked, error) // makes the database what the replica ends with
	start   func() replica.Tip                             // where the replica ended then
	confirm func(context.Context) error                    // waits for a renewal that is sent from now on
	every   time.Duration                                  // of the renewals

	confirmed atomic.Uint64 // highest TXID that is
}

// nodeID is 0 without a lease.
func (l *leased) nodeID() uint64 {
	if l == nil {
		return 0
	}
	return l.id
}

// confirmation is nil without a lease.
func (l *leased) confirmation() func(context.Context) error {
	if l == nil {
		return nil
	}
	return l.confirm
}

// Run lets the spool drop what is uploaded and confirmed, until ctx ends. It
// fails when the lease is lost.
func (l *leased) Run(ctx context.Context, spool *capture.Spool) error {
	tick := time.NewTicker(l.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		up := spool.Uploaded()
		if up == 0 {
			continue
		}
		if err := l.confirm(ctx); err != nil {
			return fmt.Errorf("confirm TXID %d: %w", up, err)
		}
		l.note(uint64(up))
		if err := spool.Confirm(up); err != nil {
			return err
		}
	}
}

// prove waits until what was uploaded is confirmed.
func (l *leased) prove(ctx context.Context, s synced) (synced, error) {
	if err := l.confirm(ctx); err != nil {
		err = fmt.Errorf("TXID %d is uploaded, but the lease was not renewed since: %w", s.Uploaded, err)
		s.Uploaded, s.Complete = min(s.Uploaded, l.confirmed.Load()), false
		return s, err
	}
	l.note(s.Uploaded)
	return s, nil
}

// head is the newest transaction that a renewal which is sent from now on
// confirms: the newest one that is uploaded.
func (d *replicated) head() leaser.Head {
	head := leaser.Head{TXID: d.from.lease.confirmed.Load()}
	d.mu.Lock()
	p := d.parts
	d.mu.Unlock()
	if p == nil {
		return head
	}
	if pos := p.uploader.Status().Pos; uint64(pos.TXID) >= head.TXID && pos.PostApplyChecksum != 0 {
		head = leaser.Head{TXID: uint64(pos.TXID), Chain: pos.PostApplyChecksum.String()}
	}
	return head
}

// note keeps the highest TXID that is confirmed.
func (l *leased) note(txid uint64) {
	for old := l.confirmed.Load(); old < txid && !l.confirmed.CompareAndSwap(old, txid); old = l.confirmed.Load() {
	}
}
