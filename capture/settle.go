package capture

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-io/tidemark/ltx"
)

// learn asks what the replica proves, unless that is known.
func (c *Capturer) learn(ctx context.Context) error {
	if c.plan.settled || c.plan.tip != nil {
		return nil
	}
	tip, err := c.opts.Tip(ctx)
	if err != nil {
		return fmt.Errorf("read the replica's newest position: %w", err)
	}
	c.plan.tip = &tip
	return nil
}

// settle finds out how the open database relates to the replica, and captures
// what differs. The spool hands out nothing before.
func (c *Capturer) settle(ctx context.Context, reason string) (err error) {
	if p := c.plan.resume; p != nil {
		c.plan.resume = nil
		if ok, err := c.resume(*p); ok || err != nil {
			return err
		}
		reason = "changed while it was closed"
	}
	if c.plan.settled {
		return c.resync(ctx, reason)
	}
	tip := *c.plan.tip
	c.st.spool.notBefore(tip.At)
	if why := c.st.doubts(tip); why != "" {
		if tip.Pos.TXID != 0 {
			c.opts.Log.Warn("local state does not continue the replica", "reason", why)
		}
		err = c.restart(ctx, tip)
	} else {
		err = c.resync(ctx, reason)
	}
	if err != nil {
		return err
	}
	c.plan.settled, c.plan.tip = true, nil
	c.st.spool.open()
	return nil
}

// restart settles a database whose local state does not continue the replica.
// One that equals the replica needs no upload, one that is at an older point of
// its history only what changed since; any other gets a new base behind the
// tip.
func (c *Capturer) restart(ctx context.Context, tip Tip) error {
	if done, err := c.revertState(ctx, tip); done || err != nil {
		return err
	}
	if err := c.st.forget(); err != nil {
		return err
	}
	im, err := c.cur.image()
	if err != nil {
		return err
	}
	if tip.Pos.PostApplyChecksum != 0 && tip.PageSize == c.cur.db.pageSize {
		settled, err := c.adopt(ctx, im, tip)
		if settled || err != nil {
			return err
		}
	}
	after := tip.Pos
	if tip.PageSize != c.cur.db.pageSize {
		after.PostApplyChecksum = 0 // pages of another size cannot continue it
	}
	return c.base(ctx, im, after)
}

// adopt takes the database for the replica's newest position, or an older one,
// if their checksums agree.
func (c *Capturer) adopt(ctx context.Context, im *image, tip Tip) (bool, error) {
	if tip.Pages != im.pages && c.opts.History == nil {
		return false, nil
	}
	sums := c.st.sums
	if err := sums.Begin(); err != nil {
		return false, err
	}
	pos := ltx.Pos{TXID: tip.Pos.TXID, PostApplyChecksum: ltx.ChecksumFlag}
	err := im.each(ctx, func(pgno uint32, page []byte) error {
		sum := ltx.ChecksumPage(pgno, page)
		pos.PostApplyChecksum = ltx.ChecksumFlag | (pos.PostApplyChecksum ^ sum)
		return sums.Set(pgno, sum)
	})
	if err = errors.Join(err, c.st.noteSums()); err != nil {
		return false, err
	}
	if pos != tip.Pos {
		if pos.TXID, err = c.find(ctx, pos.PostApplyChecksum); err != nil || pos.TXID == 0 {
			return false, errors.Join(err, sums.Reset(), c.st.noteSums())
		}
	}
	if err := errors.Join(sums.Commit(pos, c.cur.db.pageSize, im.pages), c.st.noteSums()); err != nil {
		return false, err
	}
	if pos != tip.Pos {
		return true, c.revert(ctx, im, tip)
	}
	c.opts.Log.Info("database equals the replica", "txid", tip.Pos.TXID.String())
	c.caught(im)
	return true, nil
}

// base captures a full copy behind the position after. It is the next level-0
// file where it can continue the checksums, so that its name collides with
// what another writer puts there; else a snapshot.
func (c *Capturer) base(ctx context.Context, im *image, after ltx.Pos) error {
	size := c.cur.db.pageSize
	head := ltx.Header{PageSize: size, Commit: im.pages, MinTXID: 1, MaxTXID: after.TXID + 1}
	if after.PostApplyChecksum != 0 {
		head.MinTXID, head.PreApplyChecksum = head.MaxTXID, after.PostApplyChecksum
	}
	c.opts.Log.Info("capturing full copy", "pages", im.pages, "page_size", size, "txid", head.MaxTXID.String())
	sums := c.st.sums
	d, err := c.st.spool.draft(head)
	if err != nil {
		return err
	}
	defer d.discard()
	if err := sums.Begin(); err != nil {
		return err
	}
	total, err := im.encode(ctx, d.Encoder, func(pgno uint32, sum ltx.Checksum) error {
		d.last.note(pgno)
		return sums.Set(pgno, sum)
	})
	if err = errors.Join(err, c.st.noteSums()); err != nil {
		return fmt.Errorf("capture full copy: %w", err)
	}
	c.opts.Metrics.bases.Inc()
	c.opts.Metrics.pages.Add(float64(im.pages))
	err = c.commit(d, total, im.mark, func(pos ltx.Pos) error {
		return errors.Join(sums.Commit(pos, size, im.pages), c.st.noteSums())
	})
	if err == nil {
		c.caught(im)
	}
	return err
}
