package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/storage"
)

// replans is how often a plan is made anew because a file was merged away
// before it was read.
const replans = 5

// aim is what a restore is to reach, and what it learned on the way. The target
// stays the same however often it is planned for.
type aim struct {
	replica *Replica
	txid    ltx.TXID
	time    time.Time
	clock   *clock
	damaged map[string]error // by key

	vanished int
	newest   ltx.TXID // there was a file of, usable or not
	moment   Moment
}

func newAim(r *Replica, o RestoreOptions) *aim {
	return &aim{
		replica: r, txid: o.TXID, time: o.Time, damaged: map[string]error{},
		clock: &clock{replica: r, told: map[string]time.Time{}},
	}
}

// again tells whether an error is that of a file that was merged away, so that
// another listing may help.
func (a *aim) again(err error) bool {
	if !errors.Is(err, storage.ErrNotFound) || a.vanished >= replans {
		return false
	}
	a.vanished++
	return true
}

// exclude takes damaged files as missing from now on.
func (a *aim) exclude(found ...*damagedError) {
	for _, d := range found {
		key := a.replica.Key(d.file)
		a.damaged[key] = d.err
		a.replica.log.Warn("file is damaged, restoring without it", "file", key, "error", d.err)
	}
}

// mend plans again after a database turned out wrong: without the files that are
// damaged or, where each is right by itself, without those that were merged and
// may have been merged wrongly.
func (a *aim) mend(ctx context.Context, plan []ltx.FileInfo, wrong error, jobs int) ([]ltx.FileInfo, error) {
	found, err := a.replica.inspect(ctx, plan, jobs)
	if err != nil {
		return nil, errors.Join(wrong, err)
	}
	if len(found) > 0 {
		a.exclude(found...)
		return a.plan(ctx)
	}
	suspects := suspected(plan)
	if len(suspects) == 0 {
		return nil, wrong
	}
	for _, f := range suspects {
		a.exclude(&damagedError{f, fmt.Errorf("read %s: %w", a.replica.Key(f), wrong)})
	}
	if plan, err = a.plan(ctx); err != nil {
		return nil, wrong // which says more than that the suspects are missing
	}
	return plan, nil
}

// suspected returns the files of the highest level of a plan: what is of a
// higher level was made of what is below it, snapshots last.
func suspected(plan []ltx.FileInfo) (suspects []ltx.FileInfo) {
	highest := 0
	for _, f := range plan {
		if f.Level < ltx.LevelSnapshot {
			highest = max(highest, f.Level)
		}
	}
	if highest == 0 {
		highest = ltx.LevelSnapshot
	}
	for _, f := range plan {
		if f.Level == highest {
			suspects = append(suspects, f)
		}
	}
	return suspects
}

func (a *aim) list(ctx context.Context) ([]ltx.FileInfo, error) {
	all, err := a.replica.Inventory(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: %w", a.replica, ErrNoBackup)
	}
	a.newest = newestOf(all)
	return all, nil
}

// plan lists the files and chooses those that lead to the target.
func (a *aim) plan(ctx context.Context) ([]ltx.FileInfo, error) {
	for {
		plan, err := a.planOnce(ctx)
		if err == nil || !a.again(err) {
			return plan, err
		}
	}
}

func (a *aim) planOnce(ctx context.Context) ([]ltx.FileInfo, error) {
	all, err := a.list(ctx)
	if err != nil {
		return nil, err
	}
	target, err := a.target(ctx, all)
	if err != nil {
		return nil, err
	}
	usable, faults := a.sound(all)
	plan, err := Plan(usable, 0, target)
	var e *UnreachableError
	switch {
	case err == nil:
		return plan, nil
	case len(usable) == 0:
		return nil, errors.Join(faults...)
	case errors.As(err, &e):
		err = a.clock.complete(ctx, usable, e)
	}
	return nil, errors.Join(append([]error{err}, faults...)...)
}

// target is the TXID to reach: of 0, the newest there is a file of, usable or
// not; of a time, that of all files, so that damage never makes an older state
// pass for it.
func (a *aim) target(ctx context.Context, all []ltx.FileInfo) (ltx.TXID, error) {
	switch {
	case !a.time.IsZero():
		m, err := a.clock.at(ctx, all, a.time)
		a.moment = m
		return m.TXID, err
	case a.txid == 0:
		return a.newest, nil
	}
	return a.txid, nil
}

// sound returns the files of which no damage is known, and some of what is
// wrong with the others.
func (a *aim) sound(all []ltx.FileInfo) (usable []ltx.FileInfo, faults []error) {
	for _, f := range all {
		err := a.damaged[a.replica.Key(f)]
		if err == nil {
			err = a.replica.checkSize(f)
		}
		if err == nil {
			usable = append(usable, f)
		} else if len(faults) < namesShown {
			faults = append(faults, err)
		}
	}
	return usable, faults
}
