package capture

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// eventPause is how long events are left unread after a second one for the
	// same database: the kernel folds those of a busy writer into one meanwhile.
	eventPause = 5 * time.Millisecond
	// eventBurst is how long what piled up in a pause is read without another.
	eventBurst = 500 * time.Microsecond
	// watchAgain is how often a directory that cannot be watched is tried.
	watchAgain = time.Second
)

// Watcher passes on file events to all databases of a process: one inotify
// instance, one watch a directory. Events reach nobody before Run and after
// it. Where a directory cannot be watched, or is gone, that is logged once and
// tried again; its databases must be polled meanwhile. It is safe for
// concurrent use.
type Watcher struct {
	log *slog.Logger

	mu   sync.Mutex
	fs   *fsnotify.Watcher // nil: not running
	none error             // why there never will be events
	dirs map[string]*watched
	dark map[string]bool // directories that the kernel does not watch
}

// watched is one directory and those who asked for it.
type watched struct {
	on       bool // the kernel watches it
	reported bool
	files    map[string][]*subscriber // by the base name of the database
	entries  []*listener
}

type subscriber struct {
	wake func()
	last time.Time
}

type listener struct {
	changed func(name string)
}

// NewWatcher returns a Watcher that does not run yet.
func NewWatcher(log *slog.Logger) *Watcher {
	return &Watcher{log: log, dirs: map[string]*watched{}, dark: map[string]bool{}}
}

// Run passes on events until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		err = permission(err, "")
		w.log.Warn("file events are not available, polling instead", "error", err)
		w.fail(err)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	w.start(fs)
	defer w.stop()
	again := time.NewTicker(watchAgain)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case e := <-fs.Events:
			if w.pass(e) {
				w.breathe(ctx, fs)
			}
		case err := <-fs.Errors:
			w.lost(err)
		case <-again.C:
			w.tryAgain()
		}
	}
}

// breathe leaves events unread for a while, then reads what has piled up.
func (w *Watcher) breathe(ctx context.Context, fs *fsnotify.Watcher) {
	rest := time.NewTimer(eventPause)
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return
	case <-rest.C:
	}
	rest.Reset(eventBurst)
	for {
		select {
		case e := <-fs.Events:
			w.pass(e)
		case <-rest.C:
			return
		}
	}
}

// Database calls wake at each event of a file of the database at path: of
// itself, its WAL or its journal. wake must not block. stop ends it. An error
// says that the directory is not watched now.
func (w *Watcher) Database(path string, wake func()) (stop func(), err error) {
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	s := &subscriber{wake: wake}
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.directory(dir)
	d.files[name] = append(d.files[name], s)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		d.files[name] = slices.DeleteFunc(d.files[name], func(o *subscriber) bool { return o == s })
		if len(d.files[name]) == 0 {
			delete(d.files, name)
		}
		w.release(dir, d)
	}, w.arm(dir, d)
}

// Directory calls changed with the name of each entry of dir that appears,
// goes, or is renamed or written to; with an empty name when events were lost,
// or dir itself is gone or back: then all must be looked at. changed must not
// block. stop ends it. An error says that dir is not watched now.
func (w *Watcher) Directory(dir string, changed func(name string)) (stop func(), err error) {
	dir = filepath.Clean(dir)
	l := &listener{changed: changed}
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.directory(dir)
	d.entries = append(d.entries, l)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		d.entries = slices.DeleteFunc(d.entries, func(o *listener) bool { return o == l })
		w.release(dir, d)
	}, w.arm(dir, d)
}

// pass hands one event to those it concerns, and tells whether one of them had
// another a moment ago.
func (w *Watcher) pass(e fsnotify.Event) (again bool) {
	dir, name := filepath.Split(e.Name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if self := filepath.Clean(e.Name); w.dirs[self] != nil && (e.Op.Has(fsnotify.Remove) || e.Op.Has(fsnotify.Rename)) {
		w.dirs[self].on, w.dark[self] = false, true
		w.dirs[self].all()
	}
	d := w.dirs[filepath.Clean(dir)]
	if d == nil {
		return false
	}
	now := time.Now()
	for _, s := range d.of(name) {
		again = again || now.Sub(s.last) < eventPause
		s.last = now
		s.wake()
	}
	for _, l := range d.entries {
		l.changed(name)
	}
	return again
}

// of returns those who wait for events of the file name.
func (d *watched) of(name string) []*subscriber {
	for _, suffix := range []string{"", "-wal", "-journal"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && len(d.files[base]) > 0 {
			return d.files[base]
		}
	}
	return nil
}

// all tells everybody that there may be news.
func (d *watched) all() {
	for _, subscribers := range d.files {
		for _, s := range subscribers {
			s.wake()
		}
	}
	for _, l := range d.entries {
		l.changed("")
	}
}

// lost makes everybody look: the kernel's queue ran over.
func (w *Watcher) lost(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log.Warn("file events were lost", "error", err)
	for _, d := range w.dirs {
		d.all()
	}
}

func (w *Watcher) start(fs *fsnotify.Watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fs = fs
	for dir, d := range w.dirs {
		_ = w.arm(dir, d) // logged, and tried again
		d.all()
	}
}

// fail tells everybody that no event will ever come.
func (w *Watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.none = err
	for _, d := range w.dirs {
		d.all()
	}
}

func (w *Watcher) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.fs.Close()
	w.fs = nil
	for _, d := range w.dirs {
		d.on = false
	}
}

// tryAgain watches directories that could not be watched.
func (w *Watcher) tryAgain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for dir := range w.dark {
		if d := w.dirs[dir]; w.arm(dir, d) == nil {
			d.all()
		}
	}
}

func (w *Watcher) directory(dir string) *watched {
	d := w.dirs[dir]
	if d == nil {
		d = &watched{files: map[string][]*subscriber{}}
		w.dirs[dir] = d
	}
	return d
}

// arm asks the kernel for events of dir, unless it gives them already.
func (w *Watcher) arm(dir string, d *watched) error {
	if w.fs == nil || d.on {
		return w.none
	}
	err := w.fs.Add(dir)
	if d.on = err == nil; d.on {
		d.reported = false
		delete(w.dark, dir)
	} else {
		w.dark[dir] = true
	}
	if err != nil && !errors.Is(err, fsnotify.ErrClosed) {
		err = fmt.Errorf("watch %s: %w", dir, err)
		if !d.reported {
			d.reported = true
			w.log.Warn("watching a directory is not possible, polling instead", "error", err)
		}
	}
	return err
}

func (w *Watcher) release(dir string, d *watched) {
	if len(d.files) > 0 || len(d.entries) > 0 || w.dirs[dir] != d {
		return
	}
	delete(w.dirs, dir)
	delete(w.dark, dir)
	if w.fs != nil && d.on {
		_ = w.fs.Remove(dir)
	}
}
