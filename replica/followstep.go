package replica

import (
	"context"
	"errors"
	"fmt"
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
			for key, err := range d.damaged {
				f.opts.Log.Warn("file is damaged, followed without it", "file", key, "error", err)
			}
			return tip, nil
		}
	}
}

func (f *Follower) inventory(ctx context.Context) ([]ltx.FileInfo, error) {
	all, err := newAim(f.replica, RestoreOptions{}).list(ctx)
	if err != nil {
		return nil, err
	}
	f.note(func(s *FollowStatus) { s.LastPoll, s.Newest = time.Now(), newestOf(all) })
	return all, nil
}
