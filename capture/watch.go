package capture

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// eventPause is how long events are left unread after one: the kernel folds
// those of a busy writer into one meanwhile.
const eventPause = 5 * time.Millisecond

// watch wakes the capturer when a file of the database changes, when an upload
// is done, and once more when all has been quiet. Where the directory cannot
// be watched, polling does.
func (c *Capturer) watch(ctx context.Context) error {
	events, errs, stop := c.notify()
	defer stop()
	unread := events
	resume, calm := time.NewTimer(0), time.NewTimer(0)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.st.spool.room:
			signal(c.wake)
		case <-resume.C:
			unread = events
		case <-calm.C:
			signal(c.wake)
		case e := <-unread:
			if c.concerns(e) {
				signal(c.wake)
				unread = nil
				resume.Reset(eventPause)
				calm.Reset(quiet + eventPause)
			}
		case err := <-errs:
			// Events may be lost after an error, so look at once.
			c.opts.Log.Warn("file events were lost", "error", err)
			signal(c.wake)
		}
	}
}

// concerns tells whether an event is about the database, its WAL or its
// journal.
func (c *Capturer) concerns(e fsnotify.Event) bool {
	base, name := filepath.Base(c.path), filepath.Base(e.Name)
	return strings.HasPrefix(name, base) && name != base+"-shm"
}

func (c *Capturer) notify() (<-chan fsnotify.Event, <-chan error, func()) {
	w, err := fsnotify.NewWatcher()
	if err == nil {
		err = w.Add(filepath.Dir(c.path))
		if err != nil {
			_ = w.Close()
		}
	}
	if err != nil {
		c.opts.Log.Warn("watching the directory is not possible, polling instead", "interval", c.cfg.PollInterval.String(), "error", err)
		return nil, nil, func() {}
	}
	return w.Events, w.Errors, func() { _ = w.Close() }
}
