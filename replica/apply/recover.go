package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tidemark-io/tidemark/ltx"
)

// recover finds out where the copy is. What cannot be proven is not known: the
// position is zero then.
func (c *Copy) recover(ctx context.Context) error {
	found, err := c.identify()
	if err != nil {
		return err
	}
	c.set(found)
	if found.pos.IsZero() {
		return nil
	}
	err = c.trueSums(ctx)
	if errors.Is(err, ErrForeign) {
		found.pos = ltx.Pos{}
		c.set(found)
		return nil
	}
	return err
}

// identify tells by page 1 on which side of the newest change the file is, or
// that nothing happened to it since capture left it.
func (c *Copy) identify() (side, error) {
	raw, err := c.look()
	if err != nil {
		return side{}, err
	}
	at := c.sums.Pos()
	if n := c.note; n.known() && (at == n.old.pos || at == n.new.pos || at.IsZero() || c.sums.Interrupted()) {
		for _, s := range []side{n.new, n.old} {
			if s.shown == raw.shown && s.pages == raw.pages && (s.pages == 0 || s.pageSize == raw.pageSize) {
				return s, nil
			}
		}
	}
	if at.IsZero() || c.sums.Interrupted() || raw.pages != c.sums.Pages() {
		return raw, nil
	}
	if raw.pages == 0 {
		raw.pageSize = c.sums.PageSize()
		raw.pos = at
		return raw, nil
	}
	if raw.pageSize != c.sums.PageSize() {
		return raw, nil
	}
	page := make([]byte, raw.pageSize)
	if _, err := c.file.ReadAt(page, 0); err != nil {
		return raw, err
	}
	want, err := c.sums.Sum(1)
	if err == nil && ltx.ChecksumPage(1, page) == want {
		raw.pos = at
	}
	return raw, err
}

// look describes the file as it is, without a position.
func (c *Copy) look() (side, error) {
	var s side
	info, err := c.file.Stat()
	if err != nil || info.Size() == 0 {
		return s, err
	}
	if _, err := c.file.ReadAt(s.shown[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return s, err
	}
	s.chain = s.shown
	if s.pageSize = s.shown.pageSize(); s.pageSize == 0 {
		return s, fmt.Errorf("%s is not a SQLite database, or an encrypted one; move it away", c.path)
	}
	s.pages = uint32((info.Size() + int64(s.pageSize) - 1) / int64(s.pageSize))
	return s, nil
}

// trueSums makes the page sums those of the position, by reading the file where
// they are not. It wraps ErrForeign when the file is not at the position.
func (c *Copy) trueSums(ctx context.Context) error {
	now := c.side()
	if now.pos.IsZero() || !c.sums.Interrupted() && c.sums.Pos() == now.pos {
		return nil
	}
	c.opts.Log.Info("reading the copy, because an update was interrupted", "copy", c.path)
	sum, err := sumUp(ctx, c.file, now, c.sums)
	if err != nil {
		return err
	}
	if sum != now.pos.PostApplyChecksum {
		return fmt.Errorf("%w: %s sums up to %s, it was left at %s", ErrForeign, c.path, sum, now.pos)
	}
	return c.sums.Commit(now.pos, now.pageSize, now.pages)
}

const readBytes = 1 << 20

// sumUp begins an update of page sums and sets those of all pages of a file.
func sumUp(ctx context.Context, f *os.File, s side, sums *ltx.PageSums) (ltx.Checksum, error) {
	if err := sums.Begin(); err != nil {
		return 0, err
	}
	var total ltx.Checksum
	buf := make([]byte, readBytes)
	for at := int64(0); at < s.size(); at += readBytes {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		b := buf[:min(readBytes, s.size()-at)]
		if _, err := f.ReadAt(b, at); errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("%w: %s is shorter than %d pages", ErrForeign, f.Name(), s.pages)
		} else if err != nil {
			return 0, err
		}
		if at == 0 {
			copy(b, s.chain[:])
		}
		for i := int64(0); i < int64(len(b)); i += int64(s.pageSize) {
			pgno := uint32((at+i)/int64(s.pageSize)) + 1
			sum := ltx.Checksum(0)
			if pgno != s.lock() {
				sum = ltx.ChecksumPage(pgno, b[i:i+int64(s.pageSize)])
			}
			total ^= sum
			if err := sums.Set(pgno, sum); err != nil {
				return 0, err
			}
		}
	}
	return total | ltx.ChecksumFlag, nil
}

// Adopt reads the whole file and takes it as it is, whoever wrote it. It
// returns the checksum, which may tell the place in the chain; until a change
// says that place the position has no TXID.
func (c *Copy) Adopt(ctx context.Context) (ltx.Checksum, error) {
	if err := c.take(ctx); err != nil {
		return 0, err
	}
	defer c.give()
	sum, err := c.adopt(ctx)
	if err != nil {
		return 0, fmt.Errorf("adopt %s: %w", c.path, err)
	}
	return sum, nil
}

func (c *Copy) adopt(ctx context.Context) (ltx.Checksum, error) {
	if err := c.resettle(); err != nil {
		return 0, err
	}
	if err := c.renamed(); err != nil {
		return 0, err
	}
	if err := c.reserve(ctx); err != nil {
		return 0, err
	}
	sum, err := c.adoptReserved(ctx)
	if err = errors.Join(err, c.unreserve()); err == nil {
		err = c.toRollback(ctx)
	}
	return sum, err
}

func (c *Copy) adoptReserved(ctx context.Context) (ltx.Checksum, error) {
	raw, err := c.look()
	if err != nil {
		return 0, err
	}
	// What is in the note would put back other bytes than these.
	if err := c.note.write(raw, raw); err != nil {
		return 0, err
	}
	c.set(raw)
	sum, err := sumUp(ctx, c.file, raw, c.sums)
	if err != nil {
		return 0, err
	}
	raw.pos = ltx.Pos{PostApplyChecksum: sum}
	if raw.pageSize == 0 {
		raw.pageSize = emptyPageSize
	}
	if err := c.sums.Commit(raw.pos, raw.pageSize, raw.pages); err != nil {
		return 0, err
	}
	if err := c.note.write(raw, raw); err != nil {
		return 0, err
	}
	c.set(raw)
	return sum, nil
}
