package replica

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-io/tidemark/ltx"
)

// Relation is how a local history stands to that of a replica.
type Relation int

const (
	// Unknown means that the replica cannot tell: it ends before the base, or
	// carries no checksums where they are needed.
	Unknown Relation = iota
	// Equal means that both end at the same state.
	Equal
	// Behind means that the replica goes on from where the local one ends.
	Behind
	// Ahead means that the local one goes on from where the replica ends.
	Ahead
	// Diverged means that they hold different states after the last common
	// one, or that nothing proves the contrary.
	Diverged
)

// String returns the name in lower case.
func (r Relation) String() string {
	return [...]string{"unknown", "equal", "behind", "ahead", "diverged"}[r]
}

// Relate compares a local history with the replica: base is a position that the
// replica held once, tail the positions after each file that was not uploaded,
// one TXID each. at is the newest state known to be common; 0: none. Without a
// tail there is nothing that the replica never held, so a base that was merged
// away since is Behind; with one it is Diverged.
func (r *Replica) Relate(ctx context.Context, base ltx.Pos, tail []ltx.Pos) (Relation, ltx.TXID, error) {
	relation, at, err := r.relate(ctx, append([]ltx.Pos{base}, tail...))
	if err != nil {
		return Unknown, 0, fmt.Errorf("compare local history with %s: %w", r, err)
	}
	return relation, at, nil
}

func (r *Replica) relate(ctx context.Context, local []ltx.Pos) (Relation, ltx.TXID, error) {
	base, end := local[0], local[len(local)-1]
	tip, err := r.Tip(ctx)
	switch {
	case errors.Is(err, ErrNoBackup) && base.TXID == 0:
		return Ahead, 0, nil
	case errors.Is(err, ErrNoBackup):
		return Unknown, 0, nil
	case err != nil:
		return Unknown, 0, err
	case tip.Pos.TXID < base.TXID:
		return Unknown, 0, nil
	case tip.Pos.TXID < end.TXID:
		return r.relateEnd(ctx, local, tip)
	}
	state, err := r.compare1(ctx, end)
	switch {
	case err != nil:
		return Unknown, 0, err
	case state == stateSame && tip.Pos.TXID == end.TXID:
		return Equal, end.TXID, nil
	case state == stateSame:
		return Behind, end.TXID, nil
	case state == stateUntold && len(local) == 1:
		return Behind, 0, nil
	}
	at, err := r.lastCommon(ctx, local[:len(local)-1])
	return Diverged, at, err
}

// relateEnd compares at the end of the replica, which is within the tail.
func (r *Replica) relateEnd(ctx context.Context, local []ltx.Pos, tip Tip) (Relation, ltx.TXID, error) {
	for i, pos := range local {
		if pos.TXID != tip.Pos.TXID {
			continue
		}
		switch sum := tip.Pos.PostApplyChecksum; {
		case sum == pos.PostApplyChecksum:
			return Ahead, pos.TXID, nil
		case sum == 0:
			return Unknown, 0, nil
		}
		at, err := r.lastCommon(ctx, local[:i])
		return Diverged, at, err
	}
	return Unknown, 0, nil
}

// lastCommon returns the newest of some local states that the replica holds.
func (r *Replica) lastCommon(ctx context.Context, local []ltx.Pos) (ltx.TXID, error) {
	for i := len(local) - 1; i >= 0; i-- {
		state, err := r.compare1(ctx, local[i])
		if err != nil {
			return 0, err
		}
		if state == stateSame {
			return local[i].TXID, nil
		}
	}
	return 0, nil
}

// told is what a replica tells of a state.
type told int

const (
	stateUntold told = iota
	stateSame
	stateOther
)

func (r *Replica) compare1(ctx context.Context, pos ltx.Pos) (told, error) {
	if pos.TXID == 0 {
		return stateUntold, nil
	}
	at, err := r.PosAt(ctx, pos.TXID)
	switch sum := at.Pos.PostApplyChecksum; {
	case errors.Is(err, ErrUnreachable):
		return stateUntold, nil
	case err != nil:
		return stateUntold, err
	case sum == 0:
		return stateUntold, nil
	case sum == pos.PostApplyChecksum:
		return stateSame, nil
	}
	return stateOther, nil
}
