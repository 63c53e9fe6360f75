package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica/apply"
	"github.com/tidemark-io/tidemark/storage"
)

// drain is one way to the newest state, as often as it takes to plan for it.
type drain struct {
	f        *Follower
	damaged  map[string]error // by key
	vanished int
	reseeded bool
	looked   time.Time
	own      ltx.FileInfo // the level-0 file of the position, if there is one
}

// round plans, and applies the plan; more tells that it is worth another one.
func (d *drain) round(ctx context.Context) (tip Tip, more bool, err error) {
	f := d.f
	pos := f.copy.Pos()
	if pos.IsZero() {
		return Tip{}, true, f.adopt(ctx)
	}
	d.looked = time.Now()
	all, err := f.inventory(ctx)
	if err != nil {
		return Tip{}, false, err
	}
	newest := newestOf(all)
	switch {
	case pos.TXID == 0:
		return Tip{}, true, f.place(ctx)
	case newest < pos.TXID:
		return Tip{}, false, fmt.Errorf("%w: the newest file in %s is %s, the copy is at %s; files are gone from there, or another replica is in their place",
			ErrBackward, f.replica, newest, pos.TXID)
	case newest == pos.TXID:
		return d.arrive(ctx, all)
	}
	plan, missing := d.plan(all, pos.TXID)
	if len(plan) == 0 {
		return Tip{}, false, missing
	}
	if slices.ContainsFunc(plan, ltx.FileInfo.IsSnapshot) {
		err = d.reseed(ctx, errors.New("the files between are gone"))
	} else {
		err = f.follow(ctx, plan)
	}
	if err = d.excuse(ctx, err); err == nil {
		err = missing
	}
	return Tip{}, err == nil, err
}

// plan chooses the files that lead to the newest state or, where that cannot be
// reached, to the last before it that can, with what is missing.
func (d *drain) plan(all []ltx.FileInfo, from ltx.TXID) (plan []ltx.FileInfo, missing error) {
	usable, faults := d.usable(all)
	// What lies in level 0 below what was merged may have been stored by a writer
	// that was shut out already.
	if plan, err := Plan(aboveFloor(usable), from, newestOf(all)); err == nil && !slices.ContainsFunc(plan, ltx.FileInfo.IsSnapshot) {
		return plan, nil
	}
	plan, err := Plan(usable, from, newestOf(all))
	var e *UnreachableError
	if errors.As(err, &e) && e.Earlier > from {
		missing = errors.Join(append([]error{err}, faults...)...)
		if plan, err = Plan(usable, from, e.Earlier); err == nil {
			return plan, missing
		}
	}
	if err != nil {
		return nil, errors.Join(append([]error{err}, faults...)...)
	}
	return plan, nil
}

// excuse takes an error that another plan may avoid.
func (d *drain) excuse(ctx context.Context, err error) error {
	var damage *damagedError
	switch {
	case errors.Is(err, storage.ErrNotFound) && d.vanished < replans:
		d.vanished++
		return nil
	case errors.As(err, &damage):
		key := d.f.replica.Key(damage.file)
		if d.damaged[key] != nil {
			return err
		}
		d.damaged[key] = damage.err
		return nil
	case errors.Is(err, apply.ErrMismatch):
		return d.reseed(ctx, err)
	}
	return err
}

// reseed compares the copy with the whole newest state, once: if that does not
// help, the replica contradicts itself.
func (d *drain) reseed(ctx context.Context, why error) error {
	if d.reseeded {
		return why
	}
	d.reseeded = true
	return d.f.reseed(ctx, why.Error())
}

// usable returns the files of which no damage is known, and some of what is
// wrong with the others.
func (d *drain) usable(all []ltx.FileInfo) (usable []ltx.FileInfo, faults []error) {
	for _, file := range all {
		err := d.damaged[d.f.replica.Key(file)]
		if err == nil {
			err = d.f.replica.checkSize(file)
		}
		if err == nil {
			usable = append(usable, file)
		} else if len(faults) < namesShown {
			faults = append(faults, err)
		}
	}
	return usable, faults
}

// aboveFloor returns the files without those of level 0 that end where merged
// files reach.
func aboveFloor(files []ltx.FileInfo) (above []ltx.FileInfo) {
	floor := ltx.TXID(0)
	for _, f := range files {
		if f.Level > 0 && f.Level < ltx.LevelSnapshot {
			floor = max(floor, f.Max)
		}
	}
	for _, f := range files {
		if f.Level > 0 || f.Max > floor {
			above = append(above, f)
		}
	}
	return above
}

// arrive makes sure that the copy is what the replica holds at its position.
func (d *drain) arrive(ctx context.Context, all []ltx.FileInfo) (tip Tip, more bool, err error) {
	f := d.f
	tip = Tip{Pos: f.copy.Pos(), PageSize: f.copy.PageSize(), Commit: f.copy.Pages(), At: f.Status().At}
	var ends []ltx.FileInfo
	for _, file := range all {
		if file.Max == tip.Pos.TXID {
			ends = append(ends, file)
		}
	}
	agreed, err := d.agree(ctx, ends, &tip)
	switch {
	case err != nil:
		return Tip{}, true, d.excuse(ctx, err)
	case !agreed:
		return Tip{}, true, d.reseed(ctx, fmt.Errorf("%w: the replica holds other content at transaction %s", apply.ErrMismatch, tip.Pos.TXID))
	}
	if ends[0].Level == 0 {
		d.own = ends[0]
	}
	return tip, false, nil
}

// agree tells whether one of the files that end at a position, highest level
// first, has its checksum, or none has any.
func (d *drain) agree(ctx context.Context, ends []ltx.FileInfo, tip *Tip) (bool, error) {
	others := 0
	var faults []error
	for _, file := range slices.Backward(ends) {
		h, t, err := d.f.replica.ends(ctx, file)
		switch {
		case isDamage(err):
			faults = append(faults, err)
			continue
		case err != nil:
			return false, err
		case t.PostApplyChecksum == tip.Pos.PostApplyChecksum:
			tip.Info, tip.At = file, time.UnixMilli(h.Timestamp)
			return true, nil
		case t.PostApplyChecksum != 0:
			others++
		}
		tip.Info = file
	}
	if len(faults) == len(ends) {
		return false, errors.Join(faults...)
	}
	return others == 0, nil
}
