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

// ErrBackward is wrapped when the replica ends before the position of a copy:
// files are gone from it. Reseed accepts that.
var ErrBackward = errors.New("the replica ends before the copy")

const (
	// mostNew is how many new files of level 0 are taken one by one; for more
	// of them, all levels are listed, which hold the same in fewer files.
	mostNew = 64
	// bareLooks is how many idle looks at a replica that keeps no newest file
	// in level 0 pass between two listings of all levels.
	bareLooks = 60
)

// seen is what a follower remembers of its looks at the replica.
type seen struct {
	own   ltx.FileInfo // the level-0 file of the copy's position, as it was when the two were compared
	whole bool         // all levels have been looked at
	bare  int          // looks since then that found nothing in level 0
}

// look takes what is new in level 0. The listing begins at the file of the
// position itself, which the replica keeps: so it also tells that the replica
// still is the one that was followed.
func (f *Follower) look(ctx context.Context) error {
	pos := f.copy.Pos()
	if !f.seen.whole || pos.TXID == 0 {
		return f.drainAll(ctx)
	}
	looked := time.Now()
	files, err := f.newer(ctx, pos.TXID-1)
	if err != nil {
		return err
	}
	own, files := f.split(pos, files)
	switch {
	case own.Max == 0 && len(files) == 0:
		if f.seen.bare++; f.seen.bare < bareLooks && f.seen.own.Max == 0 {
			f.current(looked)
			return nil
		}
		return f.drainAll(ctx)
	case own.Max != 0 && !same(own, f.seen.own), len(files) > mostNew, !contiguous(files, pos.TXID):
		return f.drainAll(ctx)
	case len(files) == 0:
		f.current(looked)
		return nil
	}
	err = f.follow(ctx, files)
	if err == nil {
		f.seen.own = files[len(files)-1]
		f.current(looked)
		return nil
	}
	return f.again(ctx, err)
}

// split takes the file of the position itself from what was listed.
func (f *Follower) split(pos ltx.Pos, files []ltx.FileInfo) (own ltx.FileInfo, rest []ltx.FileInfo) {
	if len(files) > 0 && files[0].Max == pos.TXID {
		return files[0], files[1:]
	}
	return own, files
}

func same(a, b ltx.FileInfo) bool {
	return a.Min == b.Min && a.Max == b.Max && a.Size == b.Size && a.ModTime.Equal(b.ModTime)
}

// contiguous tells whether files of one transaction each follow a position.
func contiguous(files []ltx.FileInfo, after ltx.TXID) bool {
	for i, f := range files {
		if f.Min != f.Max || f.Max != after+ltx.TXID(i)+1 {
			return false
		}
	}
	return true
}

// newer lists level 0 after a TXID, up to a few more files than are taken one
// by one.
func (f *Follower) newer(ctx context.Context, after ltx.TXID) ([]ltx.FileInfo, error) {
	r := f.replica
	prefix := r.layout.levelPrefix(0)
	var files []ltx.FileInfo
	for object, err := range r.bucket.List(ctx, prefix, r.layout.Key(0, after, after)) {
		if err != nil {
			return nil, fmt.Errorf("list %s under %s: %w", prefix, r, err)
		}
		if file, ok := r.layout.ParseKey(object.Key); ok {
			file.Size, file.ModTime = object.Size, object.ModTime
			files = append(files, file)
		}
		if len(files) > mostNew+1 {
			break
		}
	}
	f.note(func(s *FollowStatus) {
		s.LastPoll = time.Now()
		if n := len(files); n > 0 {
			s.Newest = max(s.Newest, files[n-1].Max)
		}
	})
	return files, nil
}

func (f *Follower) drainAll(ctx context.Context) error {
	_, err := f.drain(ctx)
	return err
}

// again goes by all levels after what level 0 held did not do.
func (f *Follower) again(ctx context.Context, err error) error {
	if errors.Is(err, storage.ErrNotFound) || isDamage(err) || errors.Is(err, apply.ErrMismatch) {
		return f.drainAll(ctx)
	}
	return err
}

// drain brings the copy to the newest state over all levels.
func (f *Follower) drain(ctx context.Context) (Tip, error) {
	f.seen = seen{}
	d := drain{f: f, damaged: map[string]error{}}
	for {
		tip, more, err := d.round(ctx)
		if err != nil {
			return Tip{}, err
		}
		if !more {
			f.seen = seen{own: d.own, whole: true}
			f.current(d.looked)
			return tip, nil
		}
	}
}

// drain is one way to the newest state, as often as it takes to plan for it.
type drain struct {
	f        *Follower
	damaged  map[string]error // by key
	vanished int
	looked   time.Time
	own      ltx.FileInfo // the level-0 file of the position, if there is one
}

// round plans, and applies the plan; more tells that it is worth another one.
func (d *drain) round(ctx context.Context) (tip Tip, more bool, err error) {
	f := d.f
	pos := f.copy.Pos()
	if pos.IsZero() {
		return Tip{}, true, f.unknown(ctx)
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
		err = f.reseed(ctx, "the files between are gone")
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
	usable := make([]ltx.FileInfo, 0, len(all))
	var faults []error
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
		d.f.opts.Log.Warn("file is damaged, following without it", "file", key, "error", damage.err)
		return nil
	case errors.Is(err, apply.ErrMismatch):
		return d.f.reseed(ctx, err.Error())
	}
	return err
}

// arrive makes sure that the copy is what the replica holds at its position.
func (d *drain) arrive(ctx context.Context, all []ltx.FileInfo) (Tip, bool, error) {
	f := d.f
	pos := f.copy.Pos()
	at, err := f.replica.reached(ctx, all, pos.TXID)
	if err != nil {
		return Tip{}, false, err
	}
	if sum := at.Pos.PostApplyChecksum; sum != 0 && sum != pos.PostApplyChecksum {
		return Tip{}, true, f.reseed(ctx, fmt.Sprintf("the replica holds other content at transaction %s", pos.TXID))
	}
	for _, file := range all {
		if file.Level == 0 && file.Max == pos.TXID {
			d.own = file
		}
	}
	tip := Tip{Pos: pos, PageSize: f.copy.PageSize(), Commit: f.copy.Pages(), Info: at.Info, At: f.Status().At}
	return tip, false, nil
}

func (f *Follower) inventory(ctx context.Context) ([]ltx.FileInfo, error) {
	all, err := newAim(f.replica, RestoreOptions{}).list(ctx)
	if err != nil {
		return nil, err
	}
	f.note(func(s *FollowStatus) { s.LastPoll, s.Newest = time.Now(), newestOf(all) })
	return all, nil
}
