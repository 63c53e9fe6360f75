// Package apply writes the pages of LTX files into a database that others
// read, so that each reader sees all of a change or nothing of it, also when
// this process is killed in the middle: under SQLite's own locks, behind a
// rollback journal in SQLite's own format.
//
// A copy is in rollback-journal mode whatever the chain says, and its change
// counter moves with every change; what page 1 holds in the chain is kept in
// the state directory. The package knows nothing of buckets and plans.
package apply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
)

var (
	// ErrInUse is wrapped when another process has a database in WAL mode
	// open, so that it cannot be made a copy yet. Trying again may help.
	ErrInUse = errors.New("the database is in use")
	// ErrForeign is wrapped when somebody else wrote to the copy, or put another
	// file in its place. Nothing was changed. Adopt takes what is there.
	ErrForeign = errors.New("somebody else wrote to the copy")
	// ErrUnknown is wrapped when the position of the copy is not known: Adopt
	// it first.
	ErrUnknown = errors.New("the position of the copy is not known")
	// ErrMismatch is wrapped when a change does not begin where the copy is, or
	// does not lead where it says. Nothing was changed.
	ErrMismatch = errors.New("the change does not fit the copy")
)

const (
	sumsName = "sums"
	noteName = "copy"

	defaultPatience = 500 * time.Millisecond
	defaultReport   = 5 * time.Second
)

// Options adjusts a Copy; zero fields mean the defaults.
type Options struct {
	Log *slog.Logger // none: nothing is logged
	// Patience is how long new readers are kept out so that those who read come
	// to their end; afterwards they are let in for as long. Default 500 ms.
	Patience time.Duration
	// Report is how long readers may delay a change before that is logged.
	// Default 5 s.
	Report time.Duration
}

// Copy is a database file that follows a chain. It is safe for concurrent use:
// one change at a time. While it is open, this process must not close any
// other descriptor of the file unless no connection of SQLite has it open here.
type Copy struct {
	path, dir string // of the file behind all links; of the state
	opts      Options
	turn      chan struct{} // capacity 1: held while the file is worked on
	file      *os.File
	locks     locks
	sums      *ltx.PageSums
	note      *note

	mu      sync.Mutex
	now     side
	waiting time.Time // for readers, since when; zero: not
	fenced  bool
}

// Open opens the database at path as a copy. The caller holds the lock of the
// state directory, where the page sums are those that capture keeps. What a
// crash left half done is finished or undone. The position is zero when the
// file is not what the state says, or there is no state. A database in WAL mode
// is converted; ErrInUse tells that somebody has it open.
func Open(ctx context.Context, path, stateDir string, o Options) (_ *Copy, err error) {
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("open copy: %w", err)
	}
	c := &Copy{path: file, dir: stateDir, opts: o.withDefaults(), turn: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open copy %s: %w", path, err), c.close())
		}
	}()
	if c.note, err = openNote(filepath.Join(stateDir, noteName)); err != nil {
		return nil, err
	}
	if err := errors.Join(c.distrust(), settle(file)); err != nil {
		return nil, err
	}
	if c.file, err = os.OpenFile(file, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	c.locks = locks{f: c.file}
	if c.sums, err = ltx.OpenPageSums(filepath.Join(stateDir, sumsName)); err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Copy) start(ctx context.Context) error {
	if err := c.recover(ctx); err != nil {
		return err
	}
	return c.toRollback(ctx)
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	if o.Report <= 0 {
		o.Report = defaultReport
	}
	return o
}

// Path returns the path of the file, behind all symbolic links.
func (c *Copy) Path() string { return c.path }

// Pos returns the position of the copy. Without a TXID the content is known
// and its place in the chain is not (see Adopt); zero: nothing is known.
func (c *Copy) Pos() ltx.Pos { return c.side().pos }

// PageSize returns the page size in bytes, 0 of an empty file.
func (c *Copy) PageSize() uint32 { return c.side().pageSize }

// Pages returns the size of the database in pages.
func (c *Copy) Pages() uint32 { return c.side().pages }

// Waiting returns since when a change waits for readers to come to their end;
// zero when none does.
func (c *Copy) Waiting() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting
}

// Close ends the following. The file stays a database that can be read, at the
// position it is at, and Open goes on from there.
func (c *Copy) Close() error {
	c.turn <- struct{}{}
	if err := c.close(); err != nil {
		return fmt.Errorf("close copy %s: %w", c.path, err)
	}
	return nil
}

// close leaves the turn taken for ever.
func (c *Copy) close() error {
	var errs []error
	if c.sums != nil {
		errs = append(errs, c.sums.Close())
	}
	if c.note != nil {
		errs = append(errs, c.note.close())
	}
	if c.file != nil {
		errs = append(errs, c.file.Close()) // which gives up its locks
	}
	c.sums, c.note, c.file = nil, nil, nil
	return errors.Join(errs...)
}

func (c *Copy) side() side {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *Copy) set(now side) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// take waits for the turn to work on the file.
func (c *Copy) take(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if c.file == nil {
		<-c.turn
		return fmt.Errorf("copy %s: %w", c.path, os.ErrClosed)
	}
	return nil
}

func (c *Copy) give() { <-c.turn }
