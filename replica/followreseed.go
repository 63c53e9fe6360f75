package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica/apply"
)

// Reseed makes the copy what the replica holds now, whatever it is: also when
// that is older than the copy. Where the copy was at transaction common of the
// replica's history, and local files (LTX) led it from there to where it is, only
// the pages that either side has touched since are fetched; common 0 compares
// the whole database. Nothing is set aside: what the copy holds alone is gone.
func (f *Follower) Reseed(ctx context.Context, common ltx.TXID, local ...string) error {
	err := f.step(ctx, func() error {
		f.seen = seen{}
		if f.copy.Pos().IsZero() {
			common = 0
			if err := f.adopt(ctx); err != nil {
				return err
			}
		}
		if common != 0 {
			err := f.reseedTouched(ctx, common, local)
			if err == nil || !errors.Is(err, apply.ErrMismatch) && !errors.Is(err, ErrUnreachable) && !isDamage(err) {
				return err
			}
		}
		return f.reseedWhole(ctx, "its history is not that of the replica")
	})
	if err != nil {
		return fmt.Errorf("reseed from %s: %w", f.replica, err)
	}
	return nil
}

func (f *Follower) adopt(ctx context.Context) error {
	_, err := f.copy.Adopt(ctx)
	return err
}

// place finds the place of a copy in the replica's history by its checksum, or
// gives it one, once what it holds is set aside.
func (f *Follower) place(ctx context.Context) error {
	pos := f.copy.Pos()
	var txid ltx.TXID
	if f.unheld != pos.PostApplyChecksum {
		var err error
		if txid, err = f.replica.Find(ctx, pos.PostApplyChecksum); err != nil {
			return err
		}
	}
	switch {
	case f.copy.Pages() == 0:
		return f.reseedWhole(ctx, "the copy was empty")
	case txid != 0:
		return f.copy.Apply(ctx, apply.Change{
			PageSize: f.copy.PageSize(), Commit: f.copy.Pages(), Pre: pos,
			Post: ltx.Pos{TXID: txid, PostApplyChecksum: pos.PostApplyChecksum},
		})
	}
	f.unheld = pos.PostApplyChecksum
	found := fmt.Errorf("%w, or removed its state directory: %s has never held exactly what is in %s", apply.ErrForeign, f.replica, f.copy.Path())
	if f.opts.Foreign == nil {
		return found
	}
	if err := f.opts.Foreign(ctx, found); err != nil {
		return errors.Join(found, err)
	}
	return f.reseedWhole(ctx, "the replica has never held what the copy held")
}

// reseed compares the copy with the newest state, which must not be older.
func (f *Follower) reseed(ctx context.Context, why string) error {
	all, err := f.inventory(ctx)
	if err != nil {
		return err
	}
	if newest, pos := newestOf(all), f.copy.Pos(); newest < pos.TXID {
		return fmt.Errorf("%w: the newest file in %s is %s, the copy is at %s", ErrBackward, f.replica, newest, pos.TXID)
	}
	return f.reseedWhole(ctx, why)
}

// reseedWhole restores the newest state beside the copy, and applies the pages
// in which the two differ.
func (f *Follower) reseedWhole(ctx context.Context, why string) error {
	at := f.copy.Pos()
	err := f.beside(ctx, func(temp *os.File) (*assembly, iter.Seq[uint32], error) {
		o := RestoreOptions{Parallelism: defaultJobs}
		to := newAim(f.replica, o)
		plan, err := to.plan(ctx)
		if err != nil {
			return nil, nil, err
		}
		a, _, err := to.assemble(ctx, temp, o, plan)
		if err != nil {
			return nil, nil, err
		}
		return a, a.all, nil
	})
	if err == nil {
		f.opts.Log.Warn("the copy took over the replica's newest state, whatever it held", "copy", f.copy.Path(),
			"from", at.String(), "to", f.copy.Pos().String(), "reason", why)
	}
	return err
}

// reseedTouched fetches and applies the pages that were touched on either side
// since transaction common.
func (f *Follower) reseedTouched(ctx context.Context, common ltx.TXID, local []string) error {
	return f.beside(ctx, func(temp *os.File) (*assembly, iter.Seq[uint32], error) {
		touched, err := f.replica.touched(ctx, common, 0)
		if err != nil {
			return nil, nil, err
		}
		for _, name := range local {
			if err := touched.addLocal(name); err != nil {
				return nil, nil, err
			}
		}
		plan, err := newAim(f.replica, RestoreOptions{}).plan(ctx)
		if err != nil {
			return nil, nil, err
		}
		a := &assembly{replica: f.replica, out: temp, jobs: defaultJobs}
		if err := a.prepare(ctx, plan); err != nil {
			return nil, nil, err
		}
		if a.pageSize != f.copy.PageSize() || a.pos.PostApplyChecksum == 0 {
			return nil, nil, fmt.Errorf("%w: nothing would prove the result", apply.ErrMismatch)
		}
		pages := touched.within(a.pages.commit)
		for pgno := range a.all {
			if !pages.has(pgno) {
				a.claimed.add(pgno)
			}
		}
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(a.jobs + 1)
		g.Go(func() error { return a.claimAll(ctx, g, plan) })
		if err := g.Wait(); err != nil {
			return nil, nil, err
		}
		return a, pages.all(), nil
	})
}

// beside lets build put pages into a temporary file, where they will be, and
// applies them.
func (f *Follower) beside(ctx context.Context, build func(*os.File) (*assembly, iter.Seq[uint32], error)) (err error) {
	if err := removeLeftovers(f.copy.Path()); err != nil {
		return err
	}
	temp, err := createTemp(f.copy.Path(), 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(temp.Name()), temp.Close()) }()
	done, err := f.opts.Gate.Read(ctx)
	if err != nil {
		return err
	}
	a, pages, err := build(temp)
	done()
	if err != nil {
		return err
	}
	err = f.copy.Apply(ctx, apply.Change{
		Pages:    func() iter.Seq2[ltx.Page, error] { return filePages(temp, a, pages) },
		PageSize: a.pageSize, Commit: a.pages.commit, Post: a.pos,
	})
	if err == nil {
		f.note(func(s *FollowStatus) { s.Reseeds++ })
		f.reached(Tip{Pos: f.copy.Pos(), PageSize: a.pageSize, Commit: a.pages.commit, At: a.time})
	}
	return err
}

// all yields the numbers of the pages that the database has.
func (a *assembly) all(yield func(uint32) bool) {
	for pgno := uint32(1); pgno <= a.pages.commit; pgno++ {
		if pgno != a.pages.lock && !yield(pgno) {
			return
		}
	}
}

// filePages yields pages of a file.
func filePages(file *os.File, a *assembly, pages iter.Seq[uint32]) iter.Seq2[ltx.Page, error] {
	return func(yield func(ltx.Page, error) bool) {
		size := int64(a.pageSize)
		buf, start := make([]byte, 1<<20), int64(-1)
		for pgno := range pages {
			at := int64(pgno-1) * size
			if first := at / int64(len(buf)) * int64(len(buf)); first != start {
				if _, err := file.ReadAt(buf, first); err != nil && !errors.Is(err, io.EOF) {
					yield(ltx.Page{}, err)
					return
				}
				start = first
			}
			data := buf[at-start : at-start+size]
			if !yield(ltx.Page{Pgno: pgno, Data: data, Sum: ltx.ChecksumPage(pgno, data)}, nil) {
				return
			}
		}
	}
}

// addLocal adds the pages of a local file.
func (t *touches) addLocal(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	head := make([]byte, ltx.HeaderSize)
	if _, err := f.ReadAt(head, 0); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	p := piece{key: name}
	if p.header, err = ltx.ReadHeader(head); err == nil {
		p.index, err = ltx.ReadIndex(f, info.Size())
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	last := t.last
	if err := t.add(p); err != nil {
		return err
	}
	t.last = last // the replica's
	return nil
}

// within returns the pages touched, of a database of some size.
func (t *touches) within(commit uint32) *pageSet {
	s := newPageSet(commit)
	for pgno := range t.pages.all() {
		if pgno > 0 && pgno <= commit && pgno != t.lock {
			s.add(pgno)
		}
	}
	for pgno := t.least; pgno < commit; pgno++ {
		if pgno+1 != t.lock {
			s.add(pgno + 1)
		}
	}
	return s
}

// has tells whether pgno is in the set.
func (s *pageSet) has(pgno uint32) bool { return s.words[pgno/64]&(1<<(pgno%64)) != 0 }
