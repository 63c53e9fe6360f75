// Package discover finds the SQLite databases below a directory and follows
// what is added to it and removed from it. It opens files only to see whether
// they begin as SQLite's do, and none that it was told is in use: closing a
// file drops the locks this process has on it. It must not know what is done
// with a database.
package discover

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// ErrEmpty is wrapped by Scan when there is no database.
var ErrEmpty = errors.New("no SQLite database")

const (
	// gather is how long events are gathered before they are looked at.
	gather = 20 * time.Millisecond
	// lookAgain is how often a directory without reliable events is read.
	lookAgain = 5 * time.Second
)

// Options say where to look.
type Options struct {
	Root      string // absolute and without links; it need not exist for Run
	Pattern   string // of filepath.Match, for the names of files
	Recursive bool
	Except    []string // directories that are not entered
	// Watch reports names of entries of a directory that changed, an empty one
	// when everything may have. An error says that it does not now. Nil: what
	// changes is not followed.
	Watch func(dir string, changed func(name string)) (stop func(), err error)
	Log   *slog.Logger
}

// Sink takes what is found. It is called by one goroutine.
type Sink interface {
	// InUse tells whether a file must not be opened: it is a database of this
	// process already. It is asked before the file is looked into.
	InUse(path string, info fs.FileInfo) bool
	// Add tells of a database.
	Add(path string)
	// Remove tells that the file of an added database is gone. When it is let
	// go, Forget must be called: until then it is not looked into again.
	Remove(path string)
}

// Finder finds the databases below one directory.
type Finder struct {
	o    Options
	sink Sink
	news chan struct{} // capacity 1: pending is not empty

	polls     atomic.Bool
	mu        sync.Mutex
	pending   map[string]struct{} // paths to look at
	forgotten map[string]struct{}

	// Of the goroutine of Scan and Run.
	known map[string]bool // databases; false: gone, not yet forgotten
	dirs  map[string]*directory
	named map[string]struct{} // what was complained of
	inUse bool                // there was a database in use
}

// directory is one that is followed.
type directory struct {
	stop  func()
	poll  bool                // events are missing or not to be relied on
	names map[string]struct{} // of databases and followed directories in it
}

// New returns a finder that has not looked yet.
func New(o Options, sink Sink) *Finder {
	return &Finder{
		o: o, sink: sink, news: make(chan struct{}, 1),
		pending: map[string]struct{}{}, forgotten: map[string]struct{}{},
		known: map[string]bool{}, dirs: map[string]*directory{}, named: map[string]struct{}{},
	}
}

// Scan looks once. It fails if the directory cannot be read, and wraps
// ErrEmpty if it holds no database.
func (f *Finder) Scan() error {
	if err := f.enter(f.o.Root); err != nil {
		return fmt.Errorf("find databases: %w", err)
	}
	if len(f.known) == 0 && !f.inUse {
		return fmt.Errorf("find databases in %s that match %s: %w", f.o.Root, f.o.Pattern, ErrEmpty)
	}
	return nil
}

// Run follows what changes until ctx ends. It looks first, unless Scan did.
func (f *Finder) Run(ctx context.Context) error {
	defer func() {
		f.leave(f.o.Root, func(string) {})
		f.dirs[f.o.Root].stop()
	}()
	if f.dirs[f.o.Root] == nil {
		f.look(f.o.Root)
	}
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.news:
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(gather):
			}
			f.catchUp()
		case <-again.C:
			f.poll()
		}
	}
}

// Polls tells whether there are directories without reliable events.
func (f *Finder) Polls() bool { return f.polls.Load() }

// Forget ends what Remove began.
func (f *Finder) Forget(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgotten[path] = struct{}{}
	f.note(path)
}

// note has path looked at.
func (f *Finder) note(path string) {
	f.pending[path] = struct{}{}
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// catchUp looks at everything that was noted.
func (f *Finder) catchUp() {
	f.mu.Lock()
	pending, forgotten := f.pending, f.forgotten
	f.pending, f.forgotten = map[string]struct{}{}, map[string]struct{}{}
	f.mu.Unlock()
	for path := range forgotten {
		if there, known := f.known[path]; known && !there {
			delete(f.known, path)
			f.unlist(path)
		}
	}
	for path := range pending {
		f.look(path)
	}
}

// poll reads directories that do not report what changes.
func (f *Finder) poll() {
	var dirs []string
	for path, d := range f.dirs {
		if d.poll {
			dirs = append(dirs, path)
		}
	}
	for _, path := range dirs {
		f.look(path)
	}
	f.polls.Store(len(dirs) > 0)
}

// complain warns of one thing once.
func (f *Finder) complain(path, text string, err error) {
	key := path + "\x00" + text
	if _, done := f.named[key]; done {
		return
	}
	f.named[key] = struct{}{}
	f.o.Log.Warn(text, "path", path, "error", err)
}
