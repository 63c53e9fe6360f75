package capture

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrRollbackJournal is wrapped when a database is not in WAL mode and may
// not, or cannot yet, be switched to it.
var ErrRollbackJournal = errors.New("database is in rollback-journal mode")

var (
	errOpenTransaction = fmt.Errorf("%w: waiting for a moment without open transactions to switch it to WAL", ErrRollbackJournal)
	errInsists         = fmt.Errorf("%w again although it was switched to WAL: an application sets the mode whenever it opens it "+
		"(DuckLake: META_JOURNAL_MODE 'DELETE'); remove that setting from the application, or set journal-mode: keep", ErrRollbackJournal)
)

const (
	// Times between two switches of a database that somebody switches back.
	switchAgain   = time.Minute
	switchAgainTo = time.Hour
)

// journal is what is known of how the application journals.
//
// A connection of ours makes an application fail that sets the journal mode
// whenever it opens the database: it cannot leave WAL mode beside another
// connection. So after a switch to WAL the database is left alone, and read as
// it lies, until somebody has written to it and left it in WAL mode.
type journal struct {
	trial    bool   // switched by us, nobody has written since
	print    glance // at the switch
	insisted int    // times somebody switched it back
	next     time.Time
	notice   error // what keeps us from what is configured, while capture works
}

// attach connects to a database in WAL mode, and switches one to it that is to
// be. It leaves it unconnected where it must be read as it lies.
func (c *Capturer) attach() error {
	db := c.cur.db
	pageSize, inWAL, err := db.readHeader()
	if err != nil || !db.still() {
		return err
	}
	if pageSize != db.pageSize {
		return errPageSize
	}
	notice := error(nil)
	switch {
	case inWAL && c.onTrial():
	case inWAL:
		err = c.connect()
	case c.cfg.JournalMode != JournalKeep:
		notice, err = c.convert()
	}
	if notice != nil && !errors.Is(c.journal.notice, notice) {
		c.opts.Log.Warn("capturing by comparing the whole database", "reason", notice)
	}
	c.journal.notice = notice
	return err
}

// onTrial tells whether nobody has used the database since it was switched.
func (c *Capturer) onTrial() bool {
	if !c.journal.trial {
		return false
	}
	f, err := fingerprintOf(c.cur.db.path)
	return err == nil && f.wal == (stamp{}) && f.file == c.journal.print.stamp
}

func (c *Capturer) connect() error {
	db := c.cur.db
	err := db.unwritten()
	if err != nil {
		return err
	}
	err = writable(db.path)
	if err == nil {
		err = db.connect()
	}
	if isLocked(err) {
		err = errors.Join(fmt.Errorf("%s: %w", db.path, errExclusive), err)
	}
	if err == nil {
		c.journal.trial, c.journal.insisted = false, 0
	}
	return err
}

// convert switches the database to WAL mode, which the file remembers, unless
// somebody has undone that of late. The notice says why it did not.
func (c *Capturer) convert() (notice, err error) {
	j, db := &c.journal, c.cur.db
	if j.trial {
		j.trial = false
		j.next = time.Now().Add(min(switchAgain<<min(j.insisted, 10), switchAgainTo))
		j.insisted++
	}
	if j.insisted > 0 && time.Now().Before(j.next) {
		return errInsists, nil
	}
	err = switchToWAL(db.path)
	if isLocked(err) {
		return errOpenTransaction, nil
	}
	if err != nil {
		return nil, fmt.Errorf("switch %s to WAL: %w", db.path, err)
	}
	c.opts.Metrics.conversions.Inc()
	c.opts.Log.Info("switched database to WAL mode", "note", "an application that sets another journal mode whenever it opens it must not do so any more")
	if j.print, err = db.glance(); err == nil {
		j.trial = true
	}
	return nil, err
}

func switchToWAL(path string) error {
	c, err := openConn(path)
	if err != nil {
		return err
	}
	return errors.Join(c.toWAL(), c.close())
}

// captureStill captures a database that is read as it lies, if it has changed.
func (c *Capturer) captureStill(ctx context.Context) error {
	err := c.attach()
	if errors.Is(err, errPageSize) {
		return c.anew(ctx, string(errPageSize))
	}
	if err != nil {
		return err
	}
	db := c.cur.db
	if !db.still() {
		return c.resync(ctx, "the database is in WAL mode now")
	}
	now, err := db.pause()
	if err != nil || now.glance == db.seen {
		return err
	}
	return c.resync(ctx, changeCounter)
}

// changeCounter is the reason of a comparison that is not out of the ordinary.
const changeCounter = "change counter moved"

// unchanged tells whether an unconnected database is as it was captured.
func (c *Capturer) unchanged() (bool, error) {
	now, err := c.cur.db.glance()
	if errors.Is(err, errExclusive) {
		return false, nil
	}
	return err == nil && now == c.cur.db.seen, err
}
