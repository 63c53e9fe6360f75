package capture

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/tidemark-io/tidemark/wal"
)

// indexPatience is how long a writer may take to write the head of the
// wal-index; it may lose the processor half way.
const indexPatience = 2 * time.Second

// cursor reads the commits of a database from its WAL in order, and pins the
// WAL so that nothing is overwritten unread.
//
// One of two connections always holds a read transaction; the next one is begun
// on the other before it ends. What SQLite promises of a reader: nothing is
// copied back beyond where it stands; in the WAL, it keeps the WAL from
// starting over, so that frames are only added; at read mark 0 it keeps
// everything from being copied back, so that the WAL may start over once, with
// nothing lost of what was copied back before, and not again before another
// reader takes its place. So two moves of the pin lose nothing:
//
//   - When all that the old pin can see is captured. If the new one stands at
//     read mark 0, everything had been copied back, which the old one allowed
//     up to where it stood only: so all of it is captured. Otherwise the new one
//     keeps the rest.
//   - When the new one surely stands in the same generation of the WAL as the
//     old one, both held for a moment: then no frame of it can go, captured or
//     not.
//
// By induction the cursor stands in the generation that is pinned, or it has
// captured all that came before it.
type cursor struct {
	db    *database
	mark  wal.Mark // captured up to here
	known bool     // mark was set
	lost  bool     // the pin was moved past what is not captured
	held  int      // connection with the read transaction; -1: none
	bound pinBound
	firm  bool // the pin stands in the WAL: it cannot start over
	loose bool // the pin stands on the database file alone: the WAL may start over
	ran   bool // the last checkpoint did, no other one was running

	onDisk pinBound // the WAL was synced up to here
}

// index reads the head of the wal-index.
func (c *cursor) index() (wal.IndexHeader, error) {
	deadline := time.Now().Add(indexPatience)
	for {
		ih, err := wal.ReadIndexHeader(c.db.shm)
		if err == nil {
			return ih, nil
		}
		if !errors.Is(err, wal.ErrBusy) || time.Now().After(deadline) {
			return wal.IndexHeader{}, fmt.Errorf("read %s-shm: %w", c.db.path, err)
		}
		runtime.Gosched()
	}
}

// at tells whether the generation with these salts is captured up to frames.
func (c *cursor) at(salt1, salt2, frames uint32) bool {
	return c.mark.Salt1 == salt1 && c.mark.Salt2 == salt2 && c.mark.Frames >= frames
}

// next reads commits that are not captured yet, within limit. The cursor moves
// only when moved is called with the end of the segment. A doubt is returned
// when the log does not continue where the cursor stands.
func (c *cursor) next(limit wal.Limit) (wal.Segment, error) {
	if c.lost {
		return wal.Segment{}, doubt("an earlier comparison was not finished")
	}
	ih, err := c.index()
	if err != nil {
		return wal.Segment{}, err
	}
	if ih.MaxFrame == 0 {
		return wal.Segment{From: c.mark, To: c.mark}, nil
	}
	if ih.PageSize != c.db.pageSize {
		return wal.Segment{}, doubt("page size changed")
	}
	head, err := wal.ReadHeader(c.db.wal)
	if errors.Is(err, wal.ErrEmpty) || errors.Is(err, wal.ErrInvalid) || head.Salt1 != ih.Salt1 || head.Salt2 != ih.Salt2 {
		return wal.Segment{}, doubt("WAL header does not match the WAL index")
	}
	if err != nil {
		return wal.Segment{}, err
	}
	if limit.Frames == 0 || limit.Frames > ih.MaxFrame {
		limit.Frames = ih.MaxFrame
	}
	from, err := c.from(head)
	if err != nil || from.Frames >= limit.Frames {
		return wal.Segment{From: from, To: from}, err
	}
	seg, err := wal.Committed(c.db.wal, head, from, limit)
	if err == nil && seg.To.Frames != limit.Frames && !seg.More {
		err = doubt("WAL frames do not continue")
	}
	return seg, err
}

// from returns where to go on in the generation that head begins.
func (c *cursor) from(head wal.Header) (wal.Mark, error) {
	pinned := head.Salt1 == c.bound.salt1 && head.Salt2 == c.bound.salt2
	switch {
	case c.mark.Frames == 0:
		return head.Start(), nil
	case head.Salt1 == c.mark.Salt1 && head.Salt2 == c.mark.Salt2:
		return c.mark, nil
	case c.firm && !pinned:
		return wal.Mark{}, doubt("WAL restarted under a read transaction")
	case !pinned && !c.reached():
		return wal.Mark{}, doubt("WAL restarted before all of it was captured")
	case !pinned && !c.loose && head.Salt1 != c.mark.Salt1+1:
		return wal.Mark{}, doubt("WAL restarted more than once")
	}
	return head.Start(), nil
}

// moved records that everything up to the mark is captured.
func (c *cursor) moved(to wal.Mark) {
	older := c.bound.salt1 == c.mark.Salt1 && c.bound.salt2 == c.mark.Salt2
	if older && (to.Salt1 != c.mark.Salt1 || to.Salt2 != c.mark.Salt2) {
		c.bound.frames = 0 // the pin belongs to a generation that is over
	}
	c.mark, c.known, c.lost = to, true, false
}

// backlog returns how many frames are committed and not captured.
func (c *cursor) backlog(ih wal.IndexHeader) uint32 {
	if ih.Salt1 == c.mark.Salt1 && ih.Salt2 == c.mark.Salt2 {
		return ih.MaxFrame - min(c.mark.Frames, ih.MaxFrame)
	}
	return ih.MaxFrame
}
