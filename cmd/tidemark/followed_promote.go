package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/leaser"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

var (
	// errOutranked ends a term: another one, that came later, has begun.
	errOutranked = errors.New("a later primary has written the replica")
	// errObjectsLost keeps a database from being served.
	errObjectsLost = errors.New("files of the replica are missing")
)

type headOf = leaser.Head

const (
	mostClaims = 8 // more than that, and somebody is alive
	mostTries  = 4 // to bring what is local to the replica
)

// claim makes the database what its replica ends with, uploads what only this
// node has, and shuts out whoever wrote the replica before. It may be repeated
// after an error.
func (f *followed) claim(ctx context.Context, t *term) error {
	for range mostTries {
		if !f.keepsState() {
			if err := f.let(); err != nil {
				return err
			}
		}
		if err := f.settle(ctx); err != nil {
			return err
		}
		switch f.standing() {
		case absent, fresh:
			return nil
		case ahead:
			if err := f.uploadTail(ctx, t); err != nil && !isFenced(err) {
				return err
			}
			if err := f.let(); err != nil { // and see what became of it
				return err
			}
		case inPlace:
			claimed, err := f.claimInPlace(ctx, t)
			if err != nil || claimed {
				return err
			}
			if err := errors.Join(f.gate.Open(), f.let()); err != nil {
				return err
			}
			f.gate = nil
		case following:
			err := f.claimNext(ctx, t)
			if !errors.Is(err, errAside) {
				return err
			}
			f.aside = true
			if err := f.let(); err != nil {
				return err
			}
		}
	}
	return errors.New("the database and its replica do not come to rest")
}

// uploadTail brings the commits that only this node has to the replica.
func (f *followed) uploadTail(ctx context.Context, t *term) error {
	if err := f.outranked(ctx, t.lease.Generation()); err != nil {
		return err
	}
	f.mu.Lock()
	files := f.tail.Files
	f.mu.Unlock()
	to, err := t.remote(ctx, f)
	if err != nil {
		return err
	}
	for _, file := range files {
		if _, err := to.replica.Upload(ctx, replica.Pending(file)); err != nil {
			return err
		}
	}
	f.log.Info("commits of an earlier run uploaded", "files", len(files))
	return nil
}

// claimInPlace claims for a database that is in use and as the replica ends;
// false: it ends otherwise by now.
func (f *followed) claimInPlace(ctx context.Context, t *term) (bool, error) {
	to, err := t.remote(ctx, f)
	if err != nil {
		return false, err
	}
	if err := f.outranked(ctx, t.lease.Generation()); err != nil {
		return false, err
	}
	f.mu.Lock()
	end := f.tail.End
	f.mu.Unlock()
	tip, err := f.remote.replica.Tip(ctx)
	if err != nil || tip.Pos != end {
		return false, err
	}
	tip.Pos, err = to.replica.Claim(ctx, tip, t.id)
	if errors.Is(err, replica.ErrTaken) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	t.claimed(f, tip)
	f.log.Info("replica claimed, the database is in use", "txid", uint64(tip.Pos.TXID), "generation", t.lease.Generation())
	return true, nil
}

// claimNext catches up and claims the transaction after the tip, again and again
// while late writes of others land there.
func (f *followed) claimNext(ctx context.Context, t *term) error {
	to, err := t.remote(ctx, f)
	if err != nil {
		return err
	}
	for range mostClaims {
		tip, err := f.warm().CatchUp(ctx)
		if err != nil {
			return err
		}
		if err := f.outranked(ctx, t.lease.Generation()); err != nil {
			return err
		}
		if err := f.lost(ctx, tip, t.prior(f)); err != nil && !t.node.acceptLoss.Load() {
			return err
		}
		pos, err := to.replica.Claim(ctx, tip, t.id)
		if errors.Is(err, replica.ErrTaken) {
			f.log.Info("a late write of the primary before is taken over", "error", err)
			continue
		}
		if err != nil {
			return err
		}
		return f.afterClaim(ctx, t, pos)
	}
	return fmt.Errorf("%w: %d of its writes landed one after the other", errOutranked, mostClaims)
}

// afterClaim applies the claim.
func (f *followed) afterClaim(ctx context.Context, t *term, pos ltx.Pos) error {
	tip, err := f.warm().CatchUp(ctx)
	if err != nil {
		return err
	}
	if tip.Pos.TXID != pos.TXID {
		return fmt.Errorf("%w: TXID %d follows the claim, %d", errOutranked, uint64(tip.Pos.TXID), uint64(pos.TXID))
	}
	t.claimed(f, tip)
	f.log.Info("replica claimed", "txid", uint64(tip.Pos.TXID), "generation", t.lease.Generation())
	return nil
}

// release hands the database over to capture: from now on it may be written to.
// nil: capture has to ask the replica first.
func (f *followed) release(ctx context.Context, t *term) (*capture.Parked, error) {
	begin := time.Now()
	f.mu.Lock()
	c, stands := f.copy, f.stands
	f.mu.Unlock()
	err := errors.Join(f.unfence(), f.gate.Open())
	f.gate = nil
	if err != nil {
		return nil, err
	}
	var parked *capture.Parked
	if stands == following {
		if err := c.Release(ctx); err != nil {
			return nil, err
		}
		f.mu.Lock()
		f.copy = nil // closed
		f.mu.Unlock()
		tip := t.start(f)
		var err error
		parked, err = capture.Followed(f.cfg.Path, capture.Tip{Pos: tip.Pos, PageSize: tip.PageSize, Pages: tip.Commit, At: tip.At})
		if err != nil {
			return nil, err
		}
	}
	f.log.Debug("handed over to capture", "after", time.Since(begin))
	return parked, f.let()
}
