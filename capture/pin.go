package capture

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemark-io/tidemark/wal"
)

// pinRounds bounds how often a transaction is begun anew because the WAL
// started over meanwhile, which can hardly happen twice.
const pinRounds = 100

// checkpointPatience is how long a checkpoint of the application is waited for.
const checkpointPatience = 10 * time.Millisecond

// pinBound is the newest frame that the held read transaction can see.
type pinBound struct {
	salt1, salt2, frames uint32
}

func (b pinBound) sameLog(o pinBound) bool { return b.salt1 == o.salt1 && b.salt2 == o.salt2 }

// reader is a read transaction that was begun on one of the connections. SQLite
// lets it stand at read mark 0, on the database file alone, if and only if all
// frames it can see were copied back, and in the WAL otherwise.
//
// What is known of it comes from the wal-index read before and after: its end
// lies between both, and frames copied back only grow in number. So if fewer
// are copied back afterwards than were committed before, it stands in the WAL
// (firm); if the index is the same and all are copied back, it stands at mark 0
// (loose). If neither is sure, nothing is relied on.
type reader struct {
	conn  int
	bound pinBound
	firm  bool
	loose bool
}

// begin begins a read transaction on the free connection.
func (c *cursor) begin() (reader, error) {
	r := reader{}
	if c.held == 0 {
		r.conn = 1
	}
	conn := c.db.conns[r.conn]
	for range pinRounds {
		before, err := c.index()
		if err != nil {
			return r, err
		}
		barred, err := c.db.barred()
		if err != nil {
			return r, err
		}
		if err := conn.begin(); err != nil {
			return r, err
		}
		after, err := c.index()
		if err != nil {
			return r, errors.Join(err, conn.end())
		}
		if bound := boundOf(after); bound.sameLog(boundOf(before)) {
			r.bound = bound
			r.firm = after.Backfilled < before.MaxFrame
			r.loose = !barred && after.IndexState == before.IndexState && before.Backfilled == before.MaxFrame
			return r, nil
		}
		if err := conn.end(); err != nil {
			return r, err
		}
	}
	return r, errors.New("begin read transaction: the WAL starts over again and again")
}

func boundOf(ih wal.IndexHeader) pinBound { return pinBound{ih.Salt1, ih.Salt2, ih.MaxFrame} }

// take makes a reader the pin and ends the one that was.
func (c *cursor) take(r reader) (err error) {
	if c.held >= 0 {
		err = c.db.conns[c.held].end()
	}
	c.held, c.bound, c.firm, c.loose = r.conn, r.bound, r.firm, r.loose
	return err
}

// pin moves the pin to the present whatever is captured. If there was a mark it
// tells nothing any more, until moved sets a new one.
func (c *cursor) pin() error {
	r, err := c.begin()
	if err != nil {
		return err
	}
	c.lost = c.known
	return c.take(r)
}

// advance moves the pin to the present, unless that would let frames be
// overwritten that are not captured.
func (c *cursor) advance() error {
	r, err := c.begin()
	if err != nil {
		return err
	}
	if c.held >= 0 && !c.reached() && !(r.firm && r.bound.sameLog(c.bound)) {
		return c.db.conns[r.conn].end()
	}
	return c.take(r)
}

// follow moves the pin to the present if there is anything new.
func (c *cursor) follow(ih wal.IndexHeader) error {
	if c.held >= 0 && c.bound == boundOf(ih) {
		return nil
	}
	return c.advance()
}

// reached tells whether all that the pin can see is captured.
func (c *cursor) reached() bool {
	return c.bound.frames == 0 || c.at(c.bound.salt1, c.bound.salt2, c.bound.frames)
}

// checkpoint moves the pin to the present and copies frames back up to it, on
// the connection that is free. The application tries its own after each commit
// to a long WAL, which mostly has nothing to do and is over at once.
func (c *cursor) checkpoint() error {
	foreign, err := c.overwritten()
	if err != nil {
		return err
	}
	if foreign {
		return errForeignWrite
	}
	if err := c.advance(); err != nil {
		return err
	}
	for deadline := time.Now().Add(checkpointPatience); ; time.Sleep(checkpointPatience / 50) {
		ran, err := c.db.conns[1-c.held].passive()
		c.ran = ran
		if ran || err != nil || time.Now().After(deadline) {
			return err
		}
		ih, err := c.index()
		if err != nil || ih.Backfilled == ih.MaxFrame { // somebody else did it, and may wait for us now
			return err
		}
	}
}

// sync writes to the disk what a checkpoint would have to sync, while nobody
// waits for it.
func (c *cursor) sync() error {
	ih, err := c.index()
	if err != nil {
		return err
	}
	for _, f := range []*os.File{c.db.wal, c.db.file} {
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return fmt.Errorf("sync %s: %w", f.Name(), err)
		}
	}
	c.onDisk = boundOf(ih)
	return nil
}

// synced returns how many frames of the WAL were written to the disk by sync.
func (c *cursor) synced(ih wal.IndexHeader) uint32 {
	if !c.onDisk.sameLog(boundOf(ih)) {
		return 0
	}
	return c.onDisk.frames
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
