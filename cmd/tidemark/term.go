package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/leaser"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
)

// term is the time of a node as the primary. All that it writes with is behind
// the fence of its lease.
type term struct {
	node    *node
	lease   *leaser.Lease
	id      uint64 // node number in the headers of its files
	buckets *buckets
	sidecar *sidecar
	open    atomic.Bool // applications may write

	mu      sync.Mutex
	remotes map[*followed]*remote
	starts  map[*followed]replica.Tip // where each database begins that is claimed
}

func newTerm(n *node, lease *leaser.Lease) *term {
	return &term{
		node: n, lease: lease, remotes: map[*followed]*remote{}, starts: map[*followed]replica.Tip{},
		id:      lease.Generation()<<32 | uint64(crc32.ChecksumIEEE([]byte(n.identity.Name))),
		buckets: n.buckets.behind(func(b storage.Bucket) storage.Bucket { return leaser.Fence(b, lease) }),
	}
}

// remote is the replica of a database to write to.
func (t *term) remote(ctx context.Context, f *followed) (*remote, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.remotes[f]; r != nil {
		return r, nil
	}
	r, err := t.buckets.remote(ctx, f.remote.place, f.log)
	if err == nil {
		t.remotes[f] = r
	}
	return r, err
}

func (t *term) claimed(f *followed, tip replica.Tip) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.starts[f] = tip
}

// start is where a database begins; zero: it is not claimed.
func (t *term) start(f *followed) replica.Tip {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.starts[f]
}

// prior is what was confirmed of a database before this term.
func (t *term) prior(f *followed) leaser.Head {
	return t.lease.Prior().AllHeads()[t.node.headName(f.cfg)]
}

// claim claims all databases at once. Those that fail are left to be tried
// again while the others are served; the error says why none can be.
func (t *term) claim(ctx context.Context) error {
	all := t.node.databases
	errs := make([]error, len(all))
	var group errgroup.Group
	for i, f := range all {
		group.Go(func() error {
			errs[i] = f.claim(ctx, t)
			return nil
		})
	}
	_ = group.Wait()
	failed := 0
	for i, err := range errs {
		if errors.Is(err, errOutranked) || ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		if err != nil {
			failed++
			all[i].log.Error("the database is not served; this is tried again", "error", err)
		}
		all[i].note(ctx, err)
		all[i].refuse(err)
	}
	if failed == len(all) {
		return fmt.Errorf("no database can be served: %w", errors.Join(errs...))
	}
	return nil
}

// begin makes the sidecar of the term, which runs nothing yet.
func (t *term) begin(ctx context.Context) error {
	s, err := newSidecar(ctx, t.node.cfg, t.buckets, t.node.log)
	if err != nil {
		return err
	}
	for i, d := range s.databases {
		f := t.node.databases[i]
		d.from.lease = &leased{
			id: t.id, confirm: t.lease.Confirm, every: t.node.cfg.HA.Lease.Times.Renew,
			bring: func(ctx context.Context) (*capture.Parked, error) { return t.bring(ctx, f) },
			start: func() replica.Tip { return t.start(f) },
		}
	}
	t.mu.Lock()
	t.sidecar = s
	t.mu.Unlock()
	return nil
}

// bring makes a database ready for capture, and claims it before where that did
// not succeed when the term began.
func (t *term) bring(ctx context.Context, f *followed) (*capture.Parked, error) {
	if t.start(f).Pos.TXID == 0 {
		if err := f.claim(ctx, t); err != nil {
			f.note(ctx, err)
			return nil, err
		}
		f.note(ctx, nil)
	}
	return f.release(ctx, t)
}

// heads are the ends of the databases that a write of the lock confirms.
func (t *term) heads() map[string]leaser.Head {
	t.mu.Lock()
	s := t.sidecar
	t.mu.Unlock()
	heads := map[string]leaser.Head{}
	for i, f := range t.node.databases {
		start := t.start(f)
		head := leaser.Head{TXID: uint64(start.Pos.TXID), Chain: start.Pos.PostApplyChecksum.String()}
		if s != nil {
			if newest := s.databases[i].head(); newest.TXID > head.TXID {
				head = newest
			}
		}
		if head.TXID == 0 {
			head = t.prior(f)
		}
		if head.TXID > 0 {
			heads[t.node.headName(f.cfg)] = head
		}
	}
	return heads
}
