package replica

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/ltx"
)

// leastFrame is how many bytes a page takes in a file at the very least. It
// bounds what a damaged header can make us allocate.
const leastFrame = 10

// assembly puts a database together from the files of a plan. It walks from
// the newest file to the oldest: the first file that holds a page has its
// final content, so the page is claimed and older versions of it are not even
// fetched. The claiming is strictly in order, what is claimed is fetched and
// written in parallel.
type assembly struct {
	replica  *Replica
	out      *os.File
	jobs     int
	progress func(done, total int64)
	pos      ltx.Pos // PostApplyChecksum 0: the newest file carries none
	time     time.Time
	pageSize uint32
	pages    pageCount
	claimed  *pageSet
	workers  sync.Pool

	written written
}

// pageCount is what is known of the size of the database.
type pageCount struct {
	commit uint32 // pages of the database
	needed uint32 // the same without the lock page
	limit  uint32 // pages above it were cut off by a file that was handled
	lock   uint32 // number of the lock page, within the database or not
}

// written is what the parallel jobs add to.
type written struct {
	mu     sync.Mutex
	sum    ltx.Checksum
	pages  int64
	loaded int64 // bytes read from the bucket
}

// damagedError says that a file of the replica is not what it should be, which
// another file may make up for.
type damagedError struct {
	file ltx.FileInfo
	err  error
}

func (e *damagedError) Error() string { return e.err.Error() }
func (e *damagedError) Unwrap() error { return e.err }

// run fills out with the database that the plan leads to and verifies it.
func (a *assembly) run(ctx context.Context, plan []ltx.FileInfo) error {
	if err := a.prepare(ctx, plan); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(a.jobs + 1) // the claiming is one of them
	g.Go(func() error { return a.claimAll(ctx, g, plan) })
	if err := g.Wait(); err != nil {
		return err
	}
	return a.verify(plan)
}

// prepare learns from the newest file what the database is to be like.
func (a *assembly) prepare(ctx context.Context, plan []ltx.FileInfo) error {
	newest := plan[len(plan)-1]
	h, t, err := a.replica.ends(ctx, newest)
	if err != nil {
		return blame(newest, err)
	}
	size := int64(0)
	for _, f := range plan {
		size += f.Size
	}
	if int64(h.Commit) > 1+size/leastFrame {
		return blame(newest, fmt.Errorf("read %s: %w: the files are too small for a database of %d pages",
			a.replica.Key(newest), ltx.ErrCorrupt, h.Commit))
	}
	a.pos = ltx.Pos{TXID: newest.Max, PostApplyChecksum: t.PostApplyChecksum}
	a.time = time.UnixMilli(h.Timestamp)
	a.pageSize = h.PageSize
	a.pages = pageCount{commit: h.Commit, needed: h.Commit, limit: h.Commit, lock: ltx.LockPgno(h.PageSize)}
	if a.pages.lock <= h.Commit {
		a.pages.needed--
	}
	a.claimed = newPageSet(h.Commit)
	a.workers.New = func() any { return &worker{run: newRun(a.out, a.pageSize)} }
	a.report()
	return a.resize()
}

// resize gives out its final size, all holes.
func (a *assembly) resize() error {
	if err := a.out.Truncate(0); err != nil {
		return err
	}
	return a.out.Truncate(a.size())
}

func (a *assembly) size() int64 { return int64(a.pages.commit) * int64(a.pageSize) }

func (a *assembly) complete() bool { return a.claimed.n == a.pages.needed }

// claimAll handles the files until every page is claimed.
func (a *assembly) claimAll(ctx context.Context, g *errgroup.Group, plan []ltx.FileInfo) error {
	for len(plan) > 0 && !a.complete() {
		n := batch(plan)
		files, err := a.openAll(ctx, plan[len(plan)-n:])
		if err != nil {
			return err
		}
		plan = plan[:len(plan)-n]
		for i := n - 1; i >= 0 && !a.complete(); i-- {
			if err := a.claim(ctx, g, files[i]); err != nil {
				return blame(files[i].info, err)
			}
			a.pages.limit = min(a.pages.limit, files[i].header.Commit)
			files[i] = opened{}
		}
	}
	return nil
}

// claim claims the pages of one file that no newer file holds.
func (a *assembly) claim(ctx context.Context, g *errgroup.Group, o opened) error {
	switch {
	case o.header.PageSize != a.pageSize:
		return fmt.Errorf("read %s: %w: page size %d follows on %d",
			a.replica.Key(o.info), ltx.ErrCorrupt, a.pageSize, o.header.PageSize)
	case o.content != nil:
		return a.decode(o, bytes.NewReader(o.content))
	case o.stream:
		return a.decode(o, newRounds(a.fetcher(ctx, o.info), o.info.Size, a.jobs))
	}
	return a.split(o, func(w *worker) error {
		g.Go(func() error { return blame(o.info, a.load(ctx, o.info, w)) })
		return ctx.Err()
	})
}

// decode reads a file from start to end, which verifies it.
func (a *assembly) decode(o opened, r io.Reader) error {
	d, err := ltx.NewDecoder(r)
	if err != nil {
		return fmt.Errorf("read %s: %w", a.replica.Key(o.info), err)
	}
	w := a.workers.Get().(*worker)
	defer a.workers.Put(w)
	w.reset()
	for p, err := range d.Pages() {
		if err != nil {
			return fmt.Errorf("read %s: %w", a.replica.Key(o.info), err)
		}
		if p.Pgno > a.pages.limit || !a.claimed.add(p.Pgno) {
			continue
		}
		slot, err := w.run.slot(p.Pgno)
		if err != nil {
			return err
		}
		copy(slot, p.Data)
		w.add(p.Sum)
	}
	if _, err := d.Close(); err != nil {
		return fmt.Errorf("read %s: %w", a.replica.Key(o.info), err)
	}
	return a.finish(w)
}

// finish writes what a worker still holds and adds up its work.
func (a *assembly) finish(w *worker) error {
	if err := w.run.flush(); err != nil {
		return err
	}
	a.written.mu.Lock()
	a.written.sum ^= w.sum
	a.written.pages += w.pages
	a.written.mu.Unlock()
	a.report()
	return nil
}

// report tells the progress; the calls never overlap.
func (a *assembly) report() {
	if a.progress == nil {
		return
	}
	a.written.mu.Lock()
	defer a.written.mu.Unlock()
	a.progress(a.written.pages*int64(a.pageSize), int64(a.pages.needed)*int64(a.pageSize))
}

// blame marks err as the fault of f if it is about content.
func blame(f ltx.FileInfo, err error) error {
	if isDamage(err) {
		return &damagedError{f, err}
	}
	return err
}
