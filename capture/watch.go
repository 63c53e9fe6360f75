package capture

import (
	"context"
	"time"
)

// watch wakes the capturer when a file of the database changes, when an upload
// is done, and once more when all has been quiet. Where the directory cannot
// be watched, polling does.
func (c *Capturer) watch(ctx context.Context, w *Watcher) error {
	woken := make(chan struct{}, 1)
	stop, err := w.Database(c.path, func() { signal(woken) })
	defer stop()
	if err != nil {
		c.opts.Log.Debug("no file events", "error", err)
	}
	calm := time.NewTimer(0)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.st.spool.room:
			signal(c.wake)
		case <-calm.C:
			signal(c.wake)
		case <-woken:
			signal(c.wake)
			calm.Reset(quiet + eventPause)
		}
	}
}
