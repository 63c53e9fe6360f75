package replica

import (
	"context"
	"encoding/binary"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/ltx"
)

const (
	smallFile  = 1 << 20 // bytes up to which a file is fetched whole
	batchFiles = 64      // files opened ahead of the claiming
	batchBytes = 8 << 20 // memory they may take
)

// opened is a file of which is known how to read it: from its content, as a
// stream, or by its index.
type opened struct {
	info    ltx.FileInfo
	header  ltx.Header
	content []byte // of a small file
	stream  bool
	index   ltx.Index
}

// batch returns how many files at the end of a plan to open together.
func batch(plan []ltx.FileInfo) int {
	n, size := 0, int64(0)
	for n < min(len(plan), batchFiles) && size < batchBytes {
		n++
		if f := plan[len(plan)-n]; f.Size <= smallFile {
			size += f.Size
		} else {
			size += tailSize(f.Size)
		}
	}
	return n
}

func (a *assembly) openAll(ctx context.Context, files []ltx.FileInfo) ([]opened, error) {
	all := make([]opened, len(files))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(a.jobs)
	for i, f := range files {
		g.Go(func() error {
			o, err := a.open(ctx, f)
			all[i] = o
			return blame(f, err)
		})
	}
	return all, g.Wait()
}

func (a *assembly) open(ctx context.Context, f ltx.FileInfo) (opened, error) {
	o := opened{info: f}
	if err := a.replica.checkSize(f); err != nil {
		return o, err
	}
	fetch := a.fetcher(ctx, f)
	head := make([]byte, ltx.HeaderSize+ltx.PageHeaderSize)
	if f.Size <= smallFile {
		head = make([]byte, f.Size)
		o.content = head
	}
	if err := fetch(head, 0); err != nil {
		return o, err
	}
	var err error
	if o.header, err = a.replica.header(f, head[:ltx.HeaderSize]); err != nil {
		return o, err
	}
	if err = a.replica.checkClaim(f, o.header); err != nil || o.content != nil {
		return o, err
	}
	// Only the checksum of the database proves pages that were picked by an
	// index. Frames of the old form decode fast only in a row.
	if o.stream = a.pos.PostApplyChecksum == 0 || isOldFrame(head[ltx.HeaderSize:]); o.stream {
		return o, nil
	}
	t, err := newTail(fetch, f.Size)
	if err != nil {
		return o, err
	}
	if o.index, err = ltx.ReadIndex(t, f.Size); err != nil {
		return o, fmt.Errorf("read %s: %w", a.replica.Key(f), err)
	}
	return o, nil
}

// checkClaim refuses a claim that only says where a snapshot was written: what
// changed there is not known without it.
func (r *Replica) checkClaim(f ltx.FileInfo, h ltx.Header) error {
	if mayBeClaim(f) && h.NoChecksum() {
		return fmt.Errorf("read %s: %w: it only marks where a full copy was written, which is not here", r.Key(f), ltx.ErrCorrupt)
	}
	return nil
}

// isOldFrame tells whether a page header begins a frame without its size.
func isOldFrame(header []byte) bool {
	return binary.BigEndian.Uint32(header) != 0 && binary.BigEndian.Uint16(header[4:]) == 0
}

// fetcher reads a file and counts the bytes.
func (a *assembly) fetcher(ctx context.Context, f ltx.FileInfo) fetchFunc {
	return func(b []byte, offset int64) error {
		err := a.replica.fetch(ctx, f, b, offset)
		a.written.mu.Lock()
		defer a.written.mu.Unlock()
		a.written.loaded += int64(len(b))
		return err
	}
}
