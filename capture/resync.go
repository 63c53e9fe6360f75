package capture

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/tidemark-io/tidemark/ltx"
)

// resync compares the database with the page sums and captures the pages that
// differ. It needs nothing from the WAL's past.
func (c *Capturer) resync(ctx context.Context, reason string) error {
	im, err := c.cur.image()
	if err != nil {
		return err
	}
	sums := c.st.sums
	same := sums.PageSize() == c.cur.db.pageSize
	if !same || c.position().IsZero() || sums.Interrupted() {
		after := c.position()
		if !same {
			after.PostApplyChecksum = 0 // pages of another size cannot continue it
		}
		return c.base(ctx, im, after)
	}
	diff := &difference{c: c, pages: im.pages, total: c.position().PostApplyChecksum}
	defer diff.discard()
	if im.pages < sums.Pages() {
		gone, err := sums.Tail(im.pages)
		if err != nil {
			return err
		}
		diff.total = ltx.ChecksumFlag | (diff.total ^ gone)
	}
	if im.pages != sums.Pages() {
		if err := diff.start(); err != nil {
			return err
		}
	}
	if err := im.each(ctx, diff.page); err != nil {
		return fmt.Errorf("resync: %w", err)
	}
	c.compared(reason, im.pages, diff.n)
	if diff.d == nil {
		c.caught(im)
		return nil
	}
	c.opts.Metrics.pages.Add(float64(diff.n))
	err = c.commit(diff.d, diff.total, im.mark, func(pos ltx.Pos) error { return c.st.applyDraft(diff.d, pos) })
	if err == nil {
		c.caught(im)
	}
	return err
}

// caught records that everything in the image is captured.
func (c *Capturer) caught(im *image) {
	c.cur.moved(im.mark)
	c.cur.db.seen = im.glance
	c.plan.doubt = ""
}

// compared tells of a comparison: of one that is out of the ordinary everybody.
func (c *Capturer) compared(reason string, pages uint32, different int) {
	level := slog.LevelInfo
	if reason == changeCounter || reason == atStart && different == 0 {
		level = slog.LevelDebug
	}
	if reason != changeCounter {
		c.opts.Metrics.resyncs.Inc()
		c.status.set(func(s *Status) { s.Resyncs++ })
	}
	c.opts.Log.Log(context.Background(), level, "compared database with the page sums", "reason", reason, "pages", pages, "different", different)
}

// atStart is the reason of the comparison that every start makes.
const atStart = "start"

// difference writes the pages that differ from the page sums into a draft,
// which it starts at the first of them.
type difference struct {
	c     *Capturer
	d     *draft
	pages uint32 // size of the database
	total ltx.Checksum
	n     int
}

func (x *difference) start() (err error) {
	pos := x.c.position()
	x.d, err = x.c.st.spool.draft(ltx.Header{
		PageSize:         x.c.cur.db.pageSize,
		Commit:           x.pages,
		MinTXID:          pos.TXID + 1,
		MaxTXID:          pos.TXID + 1,
		PreApplyChecksum: pos.PostApplyChecksum,
	})
	return err
}

func (x *difference) page(pgno uint32, page []byte) error {
	old, err := x.c.st.sums.Sum(pgno)
	if err != nil {
		return err
	}
	sum := ltx.ChecksumPage(pgno, page)
	if sum == old {
		return nil
	}
	if x.d == nil {
		if err := x.start(); err != nil {
			return err
		}
	}
	x.total = ltx.ChecksumFlag | (x.total ^ old ^ sum)
	x.n++
	_, err = x.d.WritePage(pgno, page)
	return err
}

func (x *difference) discard() {
	if x.d != nil {
		x.d.discard()
	}
}
