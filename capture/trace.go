package capture

import (
	"time"

	"github.com/tidemark-io/tidemark/wal"
)

// trace is what a write to the database file leaves behind. In WAL mode only
// checkpoints write to it, so a file that changed while the wal-index says that
// nothing was copied back was changed by something that is not SQLite, such as
// a copy over it.
type trace struct {
	known       bool
	mtime       time.Time
	size        int64
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
	info, err := c.db.file.Stat()
	if err != nil {
		return false, err
	}
	after, err := c.index()
	if err != nil {
		return false, err
	}
	now := trace{
		known: true, mtime: info.ModTime(), size: info.Size(), salt1: after.Salt1, backfilled: after.Backfilled,
		inTheMiddle: copying(before) || copying(after) || before.Salt1 != after.Salt1 || before.Backfilled != after.Backfilled,
	}
	last := c.db.trace
	now.touched = last.known && (!last.mtime.Equal(now.mtime) || last.size != now.size)
	c.db.trace = now
	if !last.known || last.inTheMiddle || now.inTheMiddle || last.salt1 != now.salt1 || last.backfilled != now.backfilled {
		return false, nil
	}
	c.db.foreign = c.db.foreign || now.touched
	return now.touched, nil
}

func copying(ih wal.IndexHeader) bool { return ih.BackfillAttempted > ih.Backfilled }

// shut closes the database. If its file is not what SQLite made of it, nothing
// may be copied into it from the WAL any more, which is left to whoever opens
// it next. A WAL with nothing left to copy is removed by the last close, as it
// would have been without us.
func (c *cursor) shut() error {
	if c.db.still() {
		return c.db.close()
	}
	moved, err := c.db.moved()
	foreign := false
	if err == nil && !moved {
		foreign, err = c.overwritten()
	}
	if err == nil && !moved && (foreign || c.db.foreign) {
		var ih wal.IndexHeader
		ih, err = c.index()
		foreign = err == nil && ih.Backfilled < ih.MaxFrame
	}
	if err != nil || moved || foreign {
		return c.db.abandon()
	}
	return c.db.close()
}
