package leaser

import (
	"context"
	"fmt"
	"strings"
)

// Node is the name of the node that wrote the lock.
func (r Record) Node() string {
	name, _, _ := strings.Cut(r.Owner, "/")
	return name
}

// HandOver is StepDown for the node successor, and returns when somebody has
// taken the lease: with nil, when that is the successor.
func (l *Leaser) HandOver(ctx context.Context, successor string) error {
	before := l.Status().Generation
	if err := l.StepDown(ctx, successor); err != nil {
		return err
	}
	var next Record
	err := l.await(ctx, func() (bool, error) {
		next = l.protocol.watch.record
		if l.term != nil {
			next = l.protocol.held.record
		}
		return next.Generation > before && next.State != Released && next.State != Handoff, nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("hand over: the lease is released, but node %s has not taken it: %w", successor, err)
	case next.Node() != successor:
		return fmt.Errorf("hand over: node %s did not take the lease; the primary is node %s now, generation %d",
			successor, next.Node(), next.Generation)
	}
	return nil
}
