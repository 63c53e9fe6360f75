package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/scratch"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica/apply"
)

const (
	followFiles  = 256      // applied together
	followPages  = 8 << 20  // bytes that a page of each of them may take
	followBytes  = 32 << 20 // bytes of them, but for a single file
	followMemory = 64 << 10 // up to that size a file stays in memory
	followMerged = 4 << 20  // the same for some that are merged
)

// fetched is a file that was downloaded and verified.
type fetched struct {
	info    ltx.FileInfo
	header  ltx.Header
	trailer ltx.Trailer
	content []byte        // of a small file
	file    *scratch.File // of a large one
}

func (f *fetched) reader() io.Reader {
	if f.file != nil {
		return f.file.Reader()
	}
	return bytes.NewReader(f.content)
}

func (f *fetched) close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// pages yields the pages of a file that is known to be right.
func (f *fetched) pages() iter.Seq2[ltx.Page, error] {
	return func(yield func(ltx.Page, error) bool) {
		d, err := ltx.NewDecoder(f.reader())
		if err != nil {
			yield(ltx.Page{}, err)
			return
		}
		d.Pages()(yield)
	}
}

// follow applies files that lead on from the position, some at a time.
func (f *Follower) follow(ctx context.Context, files []ltx.FileInfo) error {
	most := min(followFiles, followPages/int(max(f.copy.PageSize(), 512)))
	for len(files) > 0 {
		n, size := 0, int64(0)
		for n < min(len(files), most) && (n == 0 || size+files[n].Size <= followBytes) {
			size += files[n].Size
			n++
		}
		if err := f.followBatch(ctx, files[:n], size); err != nil {
			return err
		}
		files = files[n:]
	}
	return nil
}

func (f *Follower) followBatch(ctx context.Context, files []ltx.FileInfo, size int64) (err error) {
	all := make([]*fetched, len(files))
	defer func() {
		for _, one := range all {
			if one != nil {
				err = errors.Join(err, one.close())
			}
		}
	}()
	if err := f.fetchAll(ctx, files, all); err != nil {
		return err
	}
	if err := f.fits(all); err != nil {
		return err
	}
	whole, last := all[0], all[len(all)-1]
	if len(all) > 1 {
		if whole, err = f.merge(ctx, all, size); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, whole.close()) }()
	}
	pos := ltx.Pos{TXID: last.info.Max, PostApplyChecksum: last.trailer.PostApplyChecksum}
	err = f.copy.Apply(ctx, apply.Change{
		Pages: whole.pages, PageSize: last.header.PageSize, Commit: last.header.Commit, Post: pos,
	})
	if err == nil {
		f.reached(Tip{
			Pos: f.copy.Pos(), PageSize: last.header.PageSize, Commit: last.header.Commit,
			Info: last.info, At: time.UnixMilli(last.header.Timestamp),
		})
	}
	return err
}

// fetchAll downloads and verifies files.
func (f *Follower) fetchAll(ctx context.Context, files []ltx.FileInfo, all []*fetched) error {
	done, err := f.opts.Gate.Read(ctx)
	if err != nil {
		return err
	}
	defer done()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(defaultJobs)
	for i, file := range files {
		g.Go(func() (err error) {
			all[i], err = f.fetch(ctx, file)
			return blame(file, err)
		})
	}
	return g.Wait()
}

func (f *Follower) fetch(ctx context.Context, file ltx.FileInfo) (_ *fetched, err error) {
	r, one := f.replica, &fetched{info: file}
	if err := r.checkSize(file); err != nil {
		return nil, err
	}
	var body io.Reader = newRounds(func(b []byte, offset int64) error { return r.fetch(ctx, file, b, offset) }, file.Size, 1)
	if file.Size <= followMemory {
		if one.content, err = io.ReadAll(body); err != nil {
			return nil, err
		}
		body = bytes.NewReader(one.content)
	} else {
		if one.file, err = f.opts.Scratch.Create(); err != nil {
			return nil, err
		}
		body = io.TeeReader(body, one.file)
	}
	if one.header, one.trailer, err = ltx.VerifyFile(body); err != nil {
		err = fmt.Errorf("read %s: %w", r.Key(file), err)
	} else {
		err = errors.Join(r.checkHeader(file, one.header), r.checkClaim(file, one.header))
	}
	if err != nil {
		return nil, errors.Join(err, one.close())
	}
	return one, nil
}

// fits checks that the files follow the position of the copy and each other, as
// far as they carry checksums. Where they overlap the end alone tells.
func (f *Follower) fits(all []*fetched) error {
	pos := f.copy.Pos()
	for _, one := range all {
		pre := one.header.PreApplyChecksum
		if one.info.Min == pos.TXID+1 && pre != 0 && pos.PostApplyChecksum != 0 && pre != pos.PostApplyChecksum {
			return fmt.Errorf("%w: %s applies to %s, at transaction %s there is %s",
				apply.ErrMismatch, f.replica.Key(one.info), pre, pos.TXID, pos.PostApplyChecksum)
		}
		pos = ltx.Pos{TXID: one.info.Max, PostApplyChecksum: one.trailer.PostApplyChecksum}
	}
	return nil
}

// merge makes one file of several.
func (f *Follower) merge(ctx context.Context, all []*fetched, size int64) (_ *fetched, err error) {
	sources := make([]io.Reader, len(all))
	for i, one := range all {
		sources[i] = one.reader()
	}
	one := &fetched{}
	var small bytes.Buffer
	var out io.Writer = &small
	if size > followMerged {
		if one.file, err = f.opts.Scratch.Create(); err != nil {
			return nil, err
		}
		out = one.file
	}
	if one.header, one.trailer, err = ltx.Merge(ctx, out, sources...); err != nil {
		return nil, errors.Join(err, one.close())
	}
	one.content = small.Bytes()
	return one, nil
}
