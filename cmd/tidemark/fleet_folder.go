package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/discover"
	"github.com/tidemark-io/tidemark/internal/loop"
)

// holderName is the lock file in a directory that stands for the locks of the
// databases parked below it.
const holderName = ".tidemark.lock"

// folder is a directory whose databases are replicated.
type folder struct {
	fleet   *fleet
	cfg     Database
	log     *slog.Logger
	finder  *discover.Finder
	scanned chan struct{} // closed once it was looked at

	mu     sync.Mutex
	holder *capture.Holder
	first  bool // the scan is done
	named  map[string]struct{}
	err    error // why it cannot be searched
	since  time.Time
	worked time.Time // when the bucket last did what it should
}

func newFolder(f *fleet, cfg Database, replicas []string) *folder {
	d := &folder{
		fleet: f, cfg: cfg, log: f.log.With("dir", cfg.Dir), scanned: make(chan struct{}), named: map[string]struct{}{},
	}
	o := discover.Options{Root: cfg.Dir, Pattern: cfg.Pattern, Recursive: cfg.Recursive, Except: replicas, Log: d.log}
	if cfg.Watch {
		o.Watch = f.watcher.Directory
	}
	d.finder = discover.New(o, d)
	return d
}

// Run finds databases until ctx ends.
func (d *folder) Run(ctx context.Context) error {
	return loop.Run(ctx, loop.Options{
		Name: "find databases", MinBackoff: 500 * time.Millisecond, MaxBackoff: 5 * time.Second, Log: d.log,
	}, func(ctx context.Context) error {
		err := d.scan()
		if d.cfg.Watch && d.held() && (errors.Is(err, discover.ErrEmpty) || errors.Is(err, fs.ErrNotExist)) {
			err = nil
		}
		d.note(err)
		if err != nil {
			return err
		}
		close(d.scanned)
		if d.cfg.Watch {
			return d.finder.Run(ctx)
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
}

// scan takes the directory for this process and looks at it.
func (d *folder) scan() error {
	d.mu.Lock()
	holder := d.holder
	d.mu.Unlock()
	if holder == nil {
		holder, err := capture.Hold(filepath.Join(d.cfg.Dir, holderName))
		if err != nil {
			return fmt.Errorf("search %s for databases: %w", d.cfg.Dir, err)
		}
		d.mu.Lock()
		d.holder = holder
		d.mu.Unlock()
	}
	err := d.finder.Scan()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.first = true
	return err
}

func (d *folder) held() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.holder != nil
}

// release gives the directory up.
func (d *folder) release() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.holder == nil {
		return nil
	}
	holder := d.holder
	d.holder = nil
	return holder.Close()
}

func (d *folder) note(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.since = time.Now()
	}
	d.err = err
}

// InUse implements discover.Sink.
func (d *folder) InUse(path string, info fs.FileInfo) bool {
	if _, ok := d.fleet.listed[path]; ok {
		d.warn(path, "database is listed by path too, only that entry is used")
		return true
	}
	for _, other := range d.fleet.folders {
		if other == d {
			break
		}
		if _, ok := other.cfg.finds(path); ok {
			d.warn(path, "database is found by two entries of the configuration, only the first one is used", "first", other.cfg.searched())
			return true
		}
	}
	if d.fleet.slot(path) != nil {
		return true
	}
	if links(info) < 2 {
		return false
	}
	other := d.sameFile(info)
	if other != "" {
		d.warn(path, "file is a database under another name too, only that one is used", "other", other)
	}
	return other != ""
}

// sameFile returns the name under which a file is replicated already.
func (d *folder) sameFile(info fs.FileInfo) string {
	var paths []string
	for path := range d.fleet.listed {
		paths = append(paths, path)
	}
	for _, s := range d.fleet.all() {
		paths = append(paths, s.path)
	}
	for _, path := range paths {
		if other, err := os.Stat(path); err == nil && os.SameFile(info, other) {
			return path
		}
	}
	return ""
}

// warn tells of one path once.
func (d *folder) warn(path, text string, more ...any) {
	d.mu.Lock()
	_, told := d.named[path]
	d.named[path] = struct{}{}
	d.mu.Unlock()
	if !told {
		d.log.Warn(text, append([]any{"path", path}, more...)...)
	}
}

// Add implements discover.Sink.
func (d *folder) Add(path string) {
	if err := d.add(path); err != nil {
		d.warn(path, "database is not replicated", "error", err)
		return
	}
	d.mu.Lock()
	later := d.first
	d.mu.Unlock()
	if later {
		d.log.Info("database found", "db", path)
	}
}

func (d *folder) add(path string) error {
	s := &slot{folder: d, home: home{path: path}}
	cfg, err := s.config()
	if err != nil {
		return err
	}
	place, err := cfg.Replica.locate()
	if err != nil {
		return err
	}
	s.replica, s.key = place.String(), place.key()
	f := d.fleet
	f.shared.mu.Lock()
	if other, taken := f.shared.places[s.key]; taken {
		f.shared.mu.Unlock()
		return fmt.Errorf("its replica %s is that of %s; give each directory a prefix of its own", place, other)
	}
	f.shared.places[s.key] = path
	f.shared.slots[path] = s
	s.member = f.line.Join(s)
	f.shared.mu.Unlock()
	s.stop, _ = f.watcher.Database(path, s.event) // the watcher says what it cannot watch, and patrol looks
	s.member.Wake()
	return nil
}

// Remove implements discover.Sink.
func (d *folder) Remove(path string) {
	s := d.fleet.slot(path)
	if s == nil || s.folder != d { // it was never taken
		d.finder.Forget(path)
		return
	}
	s.leave()
}

// remove ends what Remove began, once the database is closed.
func (d *folder) remove(s *slot) {
	f := d.fleet
	s.stop()
	f.shared.mu.Lock()
	delete(f.shared.slots, s.path)
	delete(f.shared.places, s.key)
	delete(f.shared.events, s)
	f.shared.mu.Unlock()
	f.tender.forget(s)
	f.buckets.metrics.forget(s.path)
	d.log.Info("database gone", "db", s.path)
	d.finder.Forget(s.path)
	f.announce()
}

// succeeded notes that the bucket did what it should, and ends the outages of
// those kinds.
func (d *folder) succeeded(kinds ...condition) {
	d.mu.Lock()
	d.worked = time.Now()
	d.mu.Unlock()
	for _, kind := range kinds {
		d.fleet.line.Release(d.outage(kind))
	}
}

// workedSince tells whether the bucket did what it should after a moment.
func (d *folder) workedSince(t time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.worked.After(t)
}

func (d *folder) outage(kind condition) string { return fmt.Sprint(kind, " ", d.cfg.searched()) }
