package capture

import (
	"fmt"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/wal"
)

// increment captures the commits of a segment of the WAL as one file.
func (c *Capturer) increment(seg wal.Segment) error {
	sums, pos := c.st.sums, c.position()
	if !grown(seg, sums.Pages(), ltx.LockPgno(c.cur.db.pageSize)) {
		return doubt("database grew by pages that are not in the WAL")
	}
	total := pos.PostApplyChecksum
	if seg.Commit < sums.Pages() {
		gone, err := sums.Tail(seg.Commit)
		if err != nil {
			return err
		}
		total ^= gone
	}
	d, err := c.st.spool.draft(ltx.Header{
		PageSize:         c.cur.db.pageSize,
		Commit:           seg.Commit,
		MinTXID:          pos.TXID + 1,
		MaxTXID:          pos.TXID + 1,
		PreApplyChecksum: pos.PostApplyChecksum,
	})
	if err != nil {
		return err
	}
	defer d.discard()
	if total, err = c.copyPages(d, seg, total); err != nil {
		return err
	}
	c.opts.Metrics.commits.Add(float64(seg.Commits))
	c.opts.Metrics.pages.Add(float64(len(seg.Pages)))
	return c.commit(d, total|ltx.ChecksumFlag, seg.To, func(pos ltx.Pos) error { return c.st.applyDraft(d, pos) })
}

// copyPages writes the newest frame of each page of the segment into the draft
// and returns the checksum of the database after it.
func (c *Capturer) copyPages(d *draft, seg wal.Segment, total ltx.Checksum) (ltx.Checksum, error) {
	size := c.cur.db.pageSize
	lock := ltx.LockPgno(size)
	page := make([]byte, size)
	for _, ref := range seg.Pages {
		if ref.Pgno == lock {
			continue
		}
		if _, err := c.cur.db.wal.ReadAt(page, wal.FrameOffset(ref.Frame, size)); err != nil {
			return 0, fmt.Errorf("read %s-wal: %w", c.path, err)
		}
		old, err := c.st.sums.Sum(ref.Pgno)
		if err != nil {
			return 0, err
		}
		sum, err := d.WritePage(ref.Pgno, page)
		if err != nil {
			return 0, err
		}
		total ^= old ^ sum
	}
	return total, nil
}

// grown tells whether every page by which the database grew is in the segment.
// SQLite writes them all, so a missing one means that the WAL was not read in
// full.
func grown(seg wal.Segment, before, lock uint32) bool {
	if seg.Commit <= before {
		return true
	}
	want := seg.Commit - before
	if before < lock && lock <= seg.Commit {
		want--
	}
	var have uint32
	for i := len(seg.Pages) - 1; i >= 0 && seg.Pages[i].Pgno > before; i-- {
		if seg.Pages[i].Pgno != lock {
			have++
		}
	}
	return have == want
}

// commit finishes a draft, adds it to the spool, brings the page sums to it by
// sums, and moves the cursor: in this order, so that a process killed between
// any two repeats the rest from the file.
func (c *Capturer) commit(d *draft, post ltx.Checksum, mark wal.Mark, sums func(ltx.Pos) error) error {
	if err := d.finish(post); err != nil {
		return err
	}
	if err := c.st.intact(); err != nil {
		return err
	}
	pos, err := c.st.spool.add(d)
	if err != nil {
		return err
	}
	if err := sums(pos); err != nil {
		return fmt.Errorf("update page sums: %w", err)
	}
	c.st.spool.publish()
	c.cur.moved(mark)
	c.last = d.last
	c.opts.Metrics.files.Inc()
	c.status.set(func(s *Status) { s.CapturedAt = time.Now() })
	return nil
}
