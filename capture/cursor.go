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

// doubt is the error that says the WAL cannot tell what changed; its text is
// the reason. A resync mends it.
type doubt string

func (d doubt) Error() string { return string(d) }

// cursor reads the commits of a database from its WAL in order, and pins the
// WAL so that nothing is overwritten unread.
//
// One of two connections always holds a read transaction. A WAL can restart
// only when every frame is copied back and no reader stands in it. A new
// transaction is begun on the free connection before the old one ends, and
// only once everything the old one could see is captured. Frames are copied
// back up to the oldest reader at most, so when the new transaction finds all
// of them copied back, and therefore stands on the database file alone (read
// mark 0), all of them are captured too: the one restart that this permits
// loses nothing, and a second one is impossible, since a reader at mark 0
// stops all copying back.
type cursor struct {
	db    *database
	mark  wal.Mark // captured up to here
	held  int      // connection with the read transaction; -1: none
	bound pinBound
	ran   bool // the last checkpoint did, no other one was running
	loose bool // when the pin was set all frames were copied back: the WAL may restart
}

// pinBound is the newest frame that the held read transaction can see.
type pinBound struct {
	salt1, salt2, frames uint32
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

// pin begins a new read transaction, then ends the old one.
func (c *cursor) pin() error {
	next := 0
	if c.held == 0 {
		next = 1
	}
	if err := c.db.conns[next].begin(); err != nil {
		return err
	}
	ih, err := c.index()
	if err != nil {
		return errors.Join(err, c.db.conns[next].end())
	}
	if c.held >= 0 {
		err = c.db.conns[c.held].end()
	}
	c.held = next
	c.bound = pinBound{ih.Salt1, ih.Salt2, ih.MaxFrame}
	c.loose = ih.Backfilled == ih.MaxFrame
	return err
}

// advance moves the pin to the present when all it protects is captured.
func (c *cursor) advance() error {
	if c.held >= 0 && !c.reached() {
		return nil
	}
	return c.pin()
}

// reached tells whether all that the pin can see is captured.
func (c *cursor) reached() bool {
	if c.bound.frames == 0 {
		return true
	}
	return c.at(c.bound.salt1, c.bound.salt2, c.bound.frames)
}

// at tells whether the generation with these salts is captured up to frames.
func (c *cursor) at(salt1, salt2, frames uint32) bool {
	return c.mark.Salt1 == salt1 && c.mark.Salt2 == salt2 && c.mark.Frames >= frames
}

// next reads commits that are not captured yet, within limit. The cursor moves
// only when moved is called with the end of the segment. A doubt is returned
// when the log does not continue where the cursor stands.
func (c *cursor) next(limit wal.Limit) (wal.Segment, error) {
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
	from, err := c.from(head)
	if err != nil || from.Frames == ih.MaxFrame {
		return wal.Segment{From: from, To: from}, err
	}
	limit.Frames = ih.MaxFrame
	seg, err := wal.Committed(c.db.wal, head, from, limit)
	if err == nil && seg.To.Frames != ih.MaxFrame && !seg.More {
		err = doubt("WAL frames do not continue")
	}
	return seg, err
}

// from returns where to go on in the generation that head begins.
func (c *cursor) from(head wal.Header) (wal.Mark, error) {
	same := head.Salt1 == c.mark.Salt1 && head.Salt2 == c.mark.Salt2
	switch {
	case c.mark.Frames == 0:
		return head.Start(), nil
	case same:
		return c.mark, nil
	case head.Salt1 != c.mark.Salt1+1 && !c.loose:
		return wal.Mark{}, doubt("WAL restarted more than once")
	case !c.reached():
		return wal.Mark{}, doubt("WAL restarted under a read transaction")
	}
	return head.Start(), nil
}

// moved records that everything up to the mark is captured.
func (c *cursor) moved(to wal.Mark) {
	older := c.bound.salt1 == c.mark.Salt1 && c.bound.salt2 == c.mark.Salt2
	if older && (to.Salt1 != c.mark.Salt1 || to.Salt2 != c.mark.Salt2) {
		c.bound.frames = 0 // the pin belongs to a generation that is over
	}
	c.mark = to
}

// backlog returns how many frames are committed and not captured.
func (c *cursor) backlog() (uint32, error) {
	ih, err := c.index()
	if err == nil && ih.Salt1 == c.mark.Salt1 && ih.Salt2 == c.mark.Salt2 {
		return ih.MaxFrame - min(c.mark.Frames, ih.MaxFrame), nil
	}
	return ih.MaxFrame, err
}

// checkpoint moves the pin to the present and copies frames back up to it, on
// the connection that is free.
func (c *cursor) checkpoint() error {
	if err := c.advance(); err != nil {
		return err
	}
	ran, err := c.db.conns[1-c.held].passive()
	c.ran = ran
	return err
}

// follow moves the pin to the present if there is anything new.
func (c *cursor) follow() error {
	ih, err := c.index()
	if err != nil || c.bound == (pinBound{ih.Salt1, ih.Salt2, ih.MaxFrame}) {
		return err
	}
	return c.advance()
}

// blocked tells whether the last checkpoint left frames that the pin allows to
// be copied back: another reader stands in the way.
func (c *cursor) blocked() (bool, error) {
	ih, err := c.index()
	same := ih.Salt1 == c.bound.salt1 && ih.Salt2 == c.bound.salt2
	return c.ran && same && ih.Backfilled < c.bound.frames, err
}

// loosen moves the pin off the WAL if all frames are captured and copied back,
// and tells whether it is off.
func (c *cursor) loosen() (bool, error) {
	ih, err := c.index()
	if err != nil {
		return false, err
	}
	captured := ih.MaxFrame == 0 || c.at(ih.Salt1, ih.Salt2, ih.MaxFrame)
	if !captured || ih.Backfilled != ih.MaxFrame {
		return false, nil
	}
	err = c.advance()
	return c.loose, err
}
