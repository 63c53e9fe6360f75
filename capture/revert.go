package capture

import (
	"context"
	"fmt"
	"iter"

	"github.com/tidemark-io/tidemark/ltx"
)

// History answers questions about what the replica held before its newest
// position.
type History interface {
	// Find returns the newest TXID after which the database had a checksum;
	// 0: none that is known.
	Find(ctx context.Context, sum ltx.Checksum) (ltx.TXID, error)
	// Touched yields the numbers of the pages that the files after one TXID, up
	// to another one, hold: ascending, each once.
	Touched(ctx context.Context, after, through ltx.TXID) iter.Seq2[uint32, error]
}

func (c *Capturer) find(ctx context.Context, sum ltx.Checksum) (ltx.TXID, error) {
	if c.opts.History == nil {
		return 0, nil
	}
	txid, err := c.opts.History.Find(ctx, sum)
	if err != nil {
		return 0, fmt.Errorf("look for the database in the replica's history: %w", err)
	}
	return txid, nil
}

// revertState reverts to a database with local state at an older point of the
// replica's history, such as one that came back with its file system.
func (c *Capturer) revertState(ctx context.Context, tip Tip) (bool, error) {
	pos, sums := c.position(), c.st.sums
	files, _ := c.st.spool.Size()
	if pos.IsZero() || sums.Interrupted() || files > 0 || pos.TXID >= tip.Pos.TXID ||
		tip.Pos.PostApplyChecksum == 0 || tip.PageSize != c.cur.db.pageSize || sums.PageSize() != tip.PageSize {
		return false, nil
	}
	at, err := c.find(ctx, pos.PostApplyChecksum)
	if err != nil || at != pos.TXID {
		return false, err
	}
	im, err := c.cur.image()
	if err != nil {
		return false, err
	}
	return true, c.revert(ctx, im, tip)
}

// revert captures a database that was brought back to an older point of its
// history: the next TXID after the tip holds the local content of every page
// that the files since that point hold, and of those that changed here since.
// The page sums are at that point. History stays one line.
func (c *Capturer) revert(ctx context.Context, im *image, tip Tip) error {
	sums, pos := c.st.sums, c.position()
	c.opts.Log.Warn("the database is at an older point of the replica's history, which goes on from there",
		"at", pos.TXID.String(), "tip", tip.Pos.TXID.String())
	d, err := c.st.spool.draft(ltx.Header{
		PageSize: tip.PageSize, Commit: im.pages,
		MinTXID: tip.Pos.TXID + 1, MaxTXID: tip.Pos.TXID + 1, PreApplyChecksum: tip.Pos.PostApplyChecksum,
	})
	if err != nil {
		return err
	}
	defer d.discard()
	next, stop := iter.Pull2(c.opts.History.Touched(ctx, pos.TXID, tip.Pos.TXID))
	defer stop()
	t := &touched{next: next}
	total := pos.PostApplyChecksum
	if im.pages < sums.Pages() {
		gone, err := sums.Tail(im.pages)
		if err != nil {
			return err
		}
		total ^= gone
	}
	err = im.each(ctx, func(pgno uint32, page []byte) error {
		held, err := t.has(pgno)
		if err != nil {
			return err
		}
		old, err := sums.Sum(pgno)
		if err != nil {
			return err
		}
		sum := ltx.ChecksumPage(pgno, page)
		if sum == old && !held && pgno <= tip.Pages {
			return nil
		}
		total ^= old ^ sum
		_, err = d.WritePage(pgno, page)
		return err
	})
	if err != nil {
		return fmt.Errorf("revert: %w", err)
	}
	err = c.commit(d, total|ltx.ChecksumFlag, im.mark, func(pos ltx.Pos) error { return c.st.applyDraft(d, pos) })
	if err == nil {
		c.caught(im)
	}
	return err
}

// touched walks over ascending page numbers.
type touched struct {
	next func() (uint32, error, bool)
	at   uint32
	done bool
}

func (t *touched) has(pgno uint32) (bool, error) {
	for t.at < pgno && !t.done {
		p, err, ok := t.next()
		if err != nil {
			return false, err
		}
		t.at, t.done = p, !ok
	}
	return !t.done && t.at == pgno, nil
}
