package capture

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/wal"
)

// settledAfter is how long a file must have been left alone so that a later
// write shows in its modification time, which the kernel counts in ticks.
const settledAfter = 20 * time.Millisecond

// Parked is what is left of a Capturer after Park: a plain value of a few
// hundred bytes. It holds nothing open.
type Parked struct {
	path   string // the file itself, behind all links
	tip    Tip    // end of what is captured
	known  bool   // tip continues what the replica proved
	files  int
	print  fingerprint
	mark   wal.Mark
	copied bool // everything up to mark is in the database file
	stale  bool // something happened while parking
}

// fingerprint tells files apart that SQLite or anybody else wrote to. An empty
// WAL is as good as none.
type fingerprint struct{ file, wal stamp }

// stamp holds the time of the last change of a file of the database, which
// nobody can set back; of our own files it does not.
type stamp struct {
	dev, ino     uint64
	size         int64
	mtime, ctime unix.Timespec
}

// Pos returns the end of what is captured.
func (p Parked) Pos() ltx.Pos { return p.tip.Pos }

// Waiting returns the number of files that wait for upload.
func (p Parked) Waiting() int { return p.files }

// Changed tells whether the database may have changed since Park. It looks at
// the files' attributes and opens nothing. A database that is gone has changed.
func (p Parked) Changed() (bool, error) {
	if p.stale {
		return true, nil
	}
	now, err := fingerprintOf(p.path)
	if err != nil {
		return true, err
	}
	return now.file != p.print.file || now.wal != (stamp{}) && now.wal != p.print.wal, nil
}

// Park closes the Capturer if everything that is committed is captured and
// nobody committed a moment ago, and returns what a new one needs to go on. It
// must not be used again then. Otherwise ok is false and it stays open. Neither
// Run nor an uploader of its spool may be running; files may wait in the spool.
func (c *Capturer) Park(ctx context.Context) (p Parked, ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.plan.lastSeen) < quiet {
		return Parked{}, false, nil
	}
	if p, ok, err = c.parkable(ctx); !ok || err != nil {
		return Parked{}, false, err
	}
	if err = park(c.lock, c.opts.Holder); err != nil {
		return Parked{}, false, err
	}
	if err = c.close(); err != nil {
		return Parked{}, false, err
	}
	// Closing may remove the WAL, which holds nothing that is not copied back;
	// anything else is somebody else's doing.
	after, err := fingerprintOf(p.path)
	p.stale = err != nil || after.file != p.print.file || after.wal != p.print.wal && after.wal != (stamp{})
	return p, true, nil
}

// parkable describes what there is; ok tells whether all of it is captured.
func (c *Capturer) parkable(ctx context.Context) (p Parked, ok bool, err error) {
	sums := c.st.sums
	p = Parked{path: c.path, tip: Tip{Pos: sums.Pos(), PageSize: sums.PageSize(), Pages: sums.Pages()}, known: c.plan.settled}
	p.files, _ = c.st.spool.Size()
	if c.cur == nil { // there is no database
		p.print, err = fingerprintOf(c.path)
		return p, err == nil && p.print == (fingerprint{}), err
	}
	db := c.cur.db
	p.path = db.path
	if err := c.st.heal(); err != nil {
		return p, false, err
	}
	if p.print, err = fingerprintOf(db.path); err != nil || !p.print.settled() {
		return p, false, err
	}
	moved, err := db.moved()
	name, _, err2 := db.unnamed()
	if err = errors.Join(err, err2); err != nil || moved || name != "" {
		return p, false, err
	}
	if db.still() {
		clean, err := c.unchanged()
		return p, clean, err
	}
	ih, err := c.cur.index()
	if err != nil {
		return p, false, err
	}
	p.mark, p.copied = c.cur.mark, ih.Backfilled == ih.MaxFrame
	if ih.MaxFrame > 0 && !c.cur.at(ih.Salt1, ih.Salt2, ih.MaxFrame) {
		return p, false, nil
	}
	overwritten, err := c.cur.overwritten()
	if overwritten {
		c.plan.doubt = errForeignWrite
	}
	return p, err == nil && c.plan.doubt == "" && !db.trace.inTheMiddle, err
}

// resume goes on where Park left off, if the files tell that nothing happened
// since but commits to the WAL. What the file holds was captured then; frames
// of another generation of the WAL are new when all of the old one had been
// copied back, and one more generation in between would have written to the
// file.
func (c *Capturer) resume(p Parked) (bool, error) {
	db := c.cur.db
	if p.stale || db.still() || db.pageSize != c.st.sums.PageSize() {
		return false, nil
	}
	if err := c.cur.pin(); err != nil {
		return false, err
	}
	now, err := fingerprintOf(db.path)
	if err != nil || now.file != p.print.file {
		return false, err
	}
	verdict, err := wal.Resume(db.wal, p.mark)
	switch {
	case err != nil:
		return false, err
	case verdict == wal.Continues:
		c.cur.moved(p.mark)
	case !p.copied:
		return false, nil
	}
	return true, nil
}

// settled tells whether a write from now on would show.
func (f fingerprint) settled() bool { return f.file.settled() && f.wal.settled() }

func (s stamp) settled() bool {
	age := time.Since(time.Unix(s.ctime.Unix()))
	return age < 0 || age > settledAfter
}

// fingerprintOf looks at the files of the database at path. Files that are not
// there have an empty stamp.
func fingerprintOf(path string) (f fingerprint, err error) {
	if f.file, err = changeOf(path); err != nil {
		return f, err
	}
	f.wal, err = changeOf(path + "-wal")
	if f.wal.size == 0 {
		f.wal = stamp{}
	}
	return f, err
}

// stampOf returns the stamp of a file of ours, empty if it is not there.
func stampOf(path string) (stamp, error) {
	s, err := changeOf(path)
	s.ctime = unix.Timespec{}
	return s, err
}

// changeOf returns the stamp of a file of the database, empty if it is not
// there.
func changeOf(path string) (stamp, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	if errors.Is(err, fs.ErrNotExist) {
		return stamp{}, nil
	}
	if err != nil {
		return stamp{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return stampFrom(st), nil
}

// changeOfOpen returns the stamp of an open file of the database.
func changeOfOpen(f *os.File) (stamp, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return stamp{}, &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return stampFrom(st), nil
}

func stampFrom(st unix.Stat_t) stamp {
	return stamp{dev: uint64(st.Dev), ino: st.Ino, size: st.Size, mtime: st.Mtim, ctime: st.Ctim}
}
