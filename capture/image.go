package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/wal"
)

// image is the whole database as of one commit: pages from the WAL where it
// has them, else from the database file. It stays readable while the cursor's
// pin is held.
type image struct {
	db      *database
	pages   uint32
	mark    wal.Mark
	overlay []wal.PageRef // ascending by page
	pause                 // that a database is read in as it lies
	// enter runs right before the first page is read, check after each chunk is
	// read and before it is used.
	enter, check func() error
}

// image pins the database anew and returns what it holds. Frames that others
// copy back meanwhile are all in the overlay, so the file's other pages do not
// change; when everything is copied back already, the file alone is the image.
func (c *cursor) image() (*image, error) {
	if c.db.still() {
		return c.db.newestStill()
	}
	if err := c.pin(); err != nil {
		return nil, err
	}
	ih, err := c.index()
	if err != nil {
		return nil, err
	}
	// The image holds all that the pin can see, also when the WAL restarted
	// between the two.
	c.bound = pinBound{ih.Salt1, ih.Salt2, ih.MaxFrame}
	return c.db.image(ih)
}

// image returns what the database holds as of a state that is pinned.
func (db *database) image(ih wal.IndexHeader) (im *image, err error) {
	im = &image{db: db, pages: ih.Pages, mark: wal.Mark{Salt1: ih.Salt1, Salt2: ih.Salt2, Frames: ih.MaxFrame, Sum: ih.FrameSum}}
	if ih.MaxFrame == 0 {
		im.pages, err = db.pages()
		return im, err
	}
	if ih.PageSize != db.pageSize {
		return nil, errPageSize
	}
	if ih.Backfilled >= ih.MaxFrame {
		return im, nil
	}
	head, err := wal.ReadHeader(db.wal)
	if err != nil {
		return nil, fmt.Errorf("read %s-wal: %w", db.path, err)
	}
	seg, err := wal.Committed(db.wal, head, head.Start(), wal.Limit{Frames: ih.MaxFrame})
	if err != nil {
		return nil, fmt.Errorf("read %s-wal: %w", db.path, err)
	}
	if head.Salt1 != ih.Salt1 || head.Salt2 != ih.Salt2 || seg.To.Frames != ih.MaxFrame {
		return nil, fmt.Errorf("read %s-wal: %d of %d frames are readable", db.path, seg.To.Frames, ih.MaxFrame)
	}
	im.overlay, im.pages, im.mark = seg.Pages, seg.Commit, seg.To
	return im, nil
}

const (
	imageChunk = 1 << 20
	// stillChunk is for a database that is read as it lies: one that fits is
	// read in one go, so that a short pause of its writers suffices.
	stillChunk = 16 << 20
)

// each calls fn with every page but the lock page, in order. The buffer is
// reused.
func (im *image) each(ctx context.Context, fn func(pgno uint32, page []byte) error) error {
	size, most := int64(im.db.pageSize), int64(imageChunk)
	if im.check != nil {
		most = stillChunk
	}
	buf := make([]byte, min(most, int64(im.pages)*size)) // many databases are small
	perChunk := uint32(most / size)
	if im.enter != nil {
		clear(buf) // the memory is there before the pause begins
		if err := im.enter(); err != nil {
			return err
		}
	}
	for first := uint32(1); first <= im.pages; first += perChunk {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-im.db.closing:
			return fmt.Errorf("read %s: %w", im.db.path, ErrNotOpen)
		default:
		}
		if err := im.chunk(first, min(perChunk, im.pages-first+1), buf, fn); err != nil {
			return err
		}
	}
	return nil
}

// encoders is how many goroutines compress a whole database: one less and the
// compression is what it waits for, more and the application misses them.
const encoders = 2

// encode writes every page but the lock page to enc, in order, and calls fn
// with the checksum of each that was written. It returns the checksum of the
// database.
func (im *image) encode(ctx context.Context, enc *ltx.Encoder, fn func(pgno uint32, sum ltx.Checksum) error) (ltx.Checksum, error) {
	total := ltx.ChecksumFlag
	pages := ltx.NewParallelEncoder(enc, encoders, func(pgno uint32, sum ltx.Checksum) error {
		total = ltx.ChecksumFlag | (total ^ sum)
		return fn(pgno, sum)
	})
	err := im.each(ctx, pages.WritePage)
	return total, cmp.Or(pages.Wait(), err)
}

// chunk calls fn with n pages from first on.
func (im *image) chunk(first, n uint32, buf []byte, fn func(pgno uint32, page []byte) error) error {
	size := im.db.pageSize
	if err := im.read(first, buf[:n*size]); err != nil {
		return err
	}
	if im.check != nil {
		if err := im.check(); err != nil {
			return err
		}
	}
	lock := ltx.LockPgno(size)
	for i := range n {
		if first+i == lock {
			continue
		}
		if err := fn(first+i, buf[i*size:(i+1)*size]); err != nil {
			return err
		}
	}
	return nil
}

// read fills buf with the pages from first on.
func (im *image) read(first uint32, buf []byte) error {
	size := im.db.pageSize
	n, err := im.db.file.ReadAt(buf, int64(first-1)*int64(size))
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", im.db.path, err)
	}
	clear(buf[n:]) // SQLite reads pages beyond the end of the file as zeros
	last := first + uint32(len(buf))/size - 1
	i, _ := slices.BinarySearchFunc(im.overlay, first, func(r wal.PageRef, p uint32) int { return int(int64(r.Pgno) - int64(p)) })
	for ; i < len(im.overlay) && im.overlay[i].Pgno <= last; i++ {
		ref := im.overlay[i]
		at := (ref.Pgno - first) * size
		if _, err := im.db.wal.ReadAt(buf[at:at+size], wal.FrameOffset(ref.Frame, size)); err != nil {
			return fmt.Errorf("read %s-wal: %w", im.db.path, err)
		}
	}
	return nil
}
