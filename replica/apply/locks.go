package apply

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/tidemark-io/tidemark/internal/filelock"
)

const (
	minPause = time.Millisecond
	maxPause = 20 * time.Millisecond
)

// locks are SQLite's locks on a database, as it takes them. They belong to the
// descriptor and not to the process, so that connections of SQLite in this
// process neither share nor lose them.
type locks struct{ f *os.File }

func (l locks) set(kind filelock.Kind, start, length int64) (ok bool, err error) {
	err = filelock.Set(l.f, kind, start, length)
	if errors.Is(err, filelock.ErrHeld) {
		return false, nil
	}
	return err == nil, err
}

// share begins to read: nobody changes the file from then on.
func (l locks) share() (ok bool, err error) {
	if ok, err = l.set(filelock.Read, filelock.Pending, 1); !ok || err != nil {
		return false, err
	}
	ok, err = l.set(filelock.Read, filelock.SharedFirst, filelock.SharedBytes)
	_, freed := l.set(filelock.None, filelock.Pending, 1)
	return ok, errors.Join(err, freed)
}

// reserve keeps other writers out; readers go on.
func (l locks) reserve() (ok bool, err error) {
	if ok, err = l.share(); !ok || err != nil {
		return false, err
	}
	if ok, err = l.set(filelock.Write, filelock.Reserved, 1); ok || err != nil {
		return ok, err
	}
	_, err = l.set(filelock.None, filelock.SharedFirst, filelock.SharedBytes)
	return false, err
}

// pend keeps new readers out.
func (l locks) pend() (ok bool, err error) { return l.set(filelock.Write, filelock.Pending, 1) }

// unpend lets them in again.
func (l locks) unpend() error {
	_, err := l.set(filelock.None, filelock.Pending, 1)
	return err
}

// exclude succeeds once nobody reads.
func (l locks) exclude() (ok bool, err error) {
	return l.set(filelock.Write, filelock.SharedFirst, filelock.SharedBytes)
}

// toReserved gives up what is more than reserved.
func (l locks) toReserved() error {
	_, err := l.set(filelock.Read, filelock.SharedFirst, filelock.SharedBytes)
	return errors.Join(err, l.unpend())
}

// free gives up everything.
func (l locks) free() error {
	_, err := l.set(filelock.None, filelock.Pending, filelock.DatabaseBytes)
	return err
}

// until repeats try, with small pauses, until it succeeds or ctx ends.
func until(ctx context.Context, try func() (bool, error)) error {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		ok, err := try()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// reserve keeps other writers out, waiting for one that is at work.
func (c *Copy) reserve(ctx context.Context) error {
	if c.isFenced() {
		return nil
	}
	return c.report(ctx, "a writer delays the copy", func(ctx context.Context) error {
		return until(ctx, c.locks.reserve)
	})
}

// unreserve gives up what a change took.
func (c *Copy) unreserve() error {
	if c.isFenced() {
		return c.locks.toReserved()
	}
	return c.locks.free()
}

// exclude waits until nobody reads. It keeps new readers out for a time, and
// lets them in for as long, by turns: one that reads for hours delays only us.
func (c *Copy) exclude(ctx context.Context) error {
	return c.report(ctx, "readers delay the copy", func(ctx context.Context) error {
		for {
			if err := until(ctx, c.locks.pend); err != nil {
				return err
			}
			turn, cancel := context.WithTimeoutCause(ctx, c.opts.Patience, errPatience)
			err := until(turn, c.locks.exclude)
			cancel()
			if err == nil {
				return nil
			}
			if err := errors.Join(ignore(err, errPatience), c.locks.unpend()); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(c.opts.Patience):
			}
		}
	})
}

var errPatience = errors.New("readers stay")

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

// report waits by wait, says once when that takes long, and when it is over.
func (c *Copy) report(ctx context.Context, what string, wait func(context.Context) error) error {
	start := time.Now()
	c.setWaiting(start)
	defer c.setWaiting(time.Time{})
	long, cancel := context.WithTimeoutCause(ctx, c.opts.Report, errPatience)
	err := wait(long)
	cancel()
	if !errors.Is(err, errPatience) {
		return err
	}
	c.opts.Log.Warn(what+", trying on", "copy", c.path, "held_by", c.locks.holder())
	if err := wait(ctx); err != nil {
		return err
	}
	c.opts.Log.Info("the copy goes on", "copy", c.path, "after", time.Since(start).Round(time.Millisecond))
	return nil
}

func (c *Copy) setWaiting(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = since
}

// holder names a process that has the file locked, as far as that is known.
func (l locks) holder() string {
	other, _ := filelock.OfOthers(l.f, filelock.Write, filelock.Pending, filelock.DatabaseBytes)
	return other.String()
}
