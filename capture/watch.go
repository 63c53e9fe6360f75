package capture

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// watch wakes the capturer when a file of the database changes and when an
// upload is done. Where the directory cannot be watched, polling does.
func (c *Capturer) watch(ctx context.Context) error {
	events, errs, stop := c.notify()
	defer stop()
	base := filepath.Base(c.path)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.st.spool.room:
			signal(c.wake)
		case e := <-events:
			name := filepath.Base(e.Name)
			if name == base || strings.HasPrefix(name, base) && name != base+"-shm" {
				signal(c.wake)
			}
		case err := <-errs:
			// Events may be lost after an error, so look at once.
			c.opts.Log.Warn("file events were lost", "error", err)
			signal(c.wake)
		}
	}
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
