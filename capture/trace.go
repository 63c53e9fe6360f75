package capture

import "github.com/tidemark-io/tidemark/wal"

// trace is what a write to the database file leaves behind. In WAL mode only
// checkpoints write to it, so a file that changed while the wal-index says that
// nothing was copied back was changed by something that is not SQLite, such as
// a copy over it, also one that keeps times.
type trace struct {
	known       bool
	file        stamp
	salt1       uint32
	backfilled  uint32
	inTheMiddle bool // a checkpoint was running, or was cut off
	touched     bool // the file is not as it was at the last look
}

// overwritten tells whether something other than a checkpoint wrote to the
// database file since the last call.
func (c *cursor) overwritten() (bool, error) {
	before, err := c.index()
	if err != nil {
		return false, err
	}
	file, err := changeOfOpen(c.db.file)
	if err != nil {
		return false, err
	}
	after, err := c.index()
	if err != nil {
		return false, err
	}
	now := trace{
		known: true, file: file, salt1: after.Salt1, backfilled: after.Backfilled,
		inTheMiddle: copying(before) || copying(after) || before.Salt1 != after.Salt1 || before.Backfilled != after.Backfilled,
	}
	last := c.db.trace
	now.touched = last.known && last.file != now.file
	c.db.trace = now
	if !last.known || last.inTheMiddle || now.inTheMiddle || last.salt1 != now.salt1 || last.backfilled != now.backfilled {
		return false, nil
	}
	c.db.foreign = c.db.foreign || now.touched
	return now.touched, nil
}

func copying(ih wal.IndexHeader) bool { return ih.BackfillAttempted > ih.Backfilled }

// shut closes the database. Where mayCopyBack forbids it, the WAL is left to
// whoever opens it next. A WAL with nothing left to copy is removed by the last
// close, as it would have been without us.
func (c *Capturer) shut() error {
	db := c.cur.db
	may, err := c.mayCopyBack()
	c.cur = nil
	if err != nil || !may {
		return db.abandon()
	}
	return db.close()
}

// mayCopyBack tells whether closing the database may copy what its WAL holds
// into its file: only into the one that the WAL belongs to, so not if it was
// replaced or written over, or if the WAL was removed just now, which may be
// the first step of that.
func (c *Capturer) mayCopyBack() (bool, error) {
	db := c.cur.db
	if db.still() {
		return true, nil
	}
	if moved, err := db.moved(); err != nil || moved {
		return false, err
	}
	name, another, err := db.unnamed()
	if err != nil {
		return false, err
	}
	ih, err := c.cur.index()
	if err != nil {
		return false, err
	}
	left := ih.Backfilled < ih.MaxFrame
	if name != "" && (another || !left || !c.names.longGone()) {
		return false, nil
	}
	overwritten, err := c.cur.overwritten()
	return !left || !overwritten && !db.foreign, err
}
