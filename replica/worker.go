package replica

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-io/tidemark/ltx"
)

const (
	rangeBytes   = 4 << 20   // one request
	rangeEntries = 16 << 10  // pages of one request
	rangeGap     = 128 << 10 // bytes not needed that are read through
	mostFrame    = 128 << 10 // more than any frame takes
)

// worker holds the buffers of one job: the frames to fetch with one request,
// and the pages to write.
type worker struct {
	entries []ltx.Entry
	in      []byte
	run     *run
	sum     ltx.Checksum
	pages   int64
}

func (w *worker) reset() {
	w.entries, w.run.buf, w.sum, w.pages = w.entries[:0], w.run.buf[:0], 0, 0
}

func (w *worker) add(sum ltx.Checksum) {
	w.sum ^= sum
	w.pages++
}

// span returns the part of the file that the entries take.
func (w *worker) span() (start, end int64) {
	last := w.entries[len(w.entries)-1]
	return w.entries[0].Offset, last.Offset + last.Size
}

// fits tells whether a frame may be fetched with those before it.
func (w *worker) fits(e ltx.Entry) bool {
	if len(w.entries) == 0 {
		return true
	}
	start, end := w.span()
	return len(w.entries) < rangeEntries && e.Offset-end <= rangeGap && e.Offset+e.Size-start <= rangeBytes
}

// split claims pages by the index of a file and submits them in ranges.
func (a *assembly) split(o opened, submit func(*worker) error) error {
	var w *worker
	for e, err := range o.index.Entries() {
		if err == nil && (e.Size > mostFrame || e.Pgno == a.pages.lock) {
			err = fmt.Errorf("%w: index has page %d with %d bytes", ltx.ErrCorrupt, e.Pgno, e.Size)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", a.replica.Key(o.info), err)
		}
		if e.Pgno > a.pages.limit {
			break
		}
		if !a.claimed.add(e.Pgno) {
			continue
		}
		if w != nil && !w.fits(e) {
			if err := submit(w); err != nil {
				return err
			}
			w = nil
		}
		if w == nil {
			w = a.workers.Get().(*worker)
			w.reset()
		}
		w.entries = append(w.entries, e)
	}
	if w != nil {
		return submit(w)
	}
	return nil
}

// load fetches the frames of a worker and writes their pages.
func (a *assembly) load(ctx context.Context, f ltx.FileInfo, w *worker) error {
	defer a.workers.Put(w)
	start, end := w.span()
	w.in = slices.Grow(w.in[:0], int(end-start))[:end-start]
	if err := a.fetcher(ctx, f)(w.in, start); err != nil {
		return err
	}
	for _, e := range w.entries {
		slot, err := w.run.slot(e.Pgno)
		if err != nil {
			return err
		}
		frame, err := ltx.DecodeFrame(w.in[e.Offset-start:][:e.Size], a.pageSize, slot)
		if err == nil && frame.Pgno != e.Pgno {
			err = fmt.Errorf("%w: page %d is where the index has page %d", ltx.ErrCorrupt, frame.Pgno, e.Pgno)
		}
		if err != nil {
			return fmt.Errorf("read %s at %d: %w", a.replica.Key(f), e.Offset, err)
		}
		w.add(frame.Sum)
	}
	return a.finish(w)
}
