package capture

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// keepState notices that somebody else removed or changed what is in the state
// directory, or took its lock, and begins anew with what is there now. What
// the replica proves must be asked again then, and not while an upload is
// under way that it does not show yet.
func (c *Capturer) keepState() error {
	why := c.stateLoss()
	if why == "" {
		return nil
	}
	dir := StateDir(c.path)
	if c.st.spool.lose() {
		return fmt.Errorf("%s in %s: waiting for the upload under way to end", why, dir)
	}
	lock := c.lock
	if why == lossOfLock {
		var err error
		if lock, err = lockState(dir, c.opts.Holder); err != nil {
			return fmt.Errorf("%s: %w", why, err)
		}
	}
	dropped, err := c.st.reopen(dir)
	if err != nil {
		if lock != c.lock {
			err = errors.Join(err, lock.Close())
		}
		return err
	}
	c.opts.Log.Warn("the local state is not what it was, beginning anew", "reason", why, "dir", dir)
	c.warnDropped(dropped)
	if lock != c.lock {
		err = c.lock.Close()
		c.lock = lock
	}
	if c.cur != nil {
		err = errors.Join(err, c.shut())
	}
	c.plan.settled, c.plan.tip, c.plan.resume = false, nil, nil
	return err
}

const lossOfLock = "the state directory or its lock was removed"

// stateLoss says what somebody else did to the state directory; empty: nothing.
// It looks at attributes alone.
func (c *Capturer) stateLoss() string {
	_, same, err := sameNamed(c.lock)
	_, err2 := os.Stat(c.st.spool.dir)
	switch {
	case err != nil || !same:
		return lossOfLock
	case c.st.intact() != nil:
		return errSumsChanged.Error()
	case err2 != nil || c.st.spool.damaged():
		return "a file of the spool was removed or changed"
	}
	return ""
}

var errSumsChanged = errors.New("the page sums were removed or changed")

// intact is errSumsChanged unless the page sums are as our last write left
// them.
func (st *state) intact() error {
	now, err := stampOf(st.path(sumsName))
	if err == nil && now != st.written {
		err = errSumsChanged
	}
	return err
}

// noteSums remembers what the page sums look like after our last write.
func (st *state) noteSums() (err error) {
	st.written, err = stampOf(st.path(sumsName))
	return err
}

func (st *state) path(name string) string { return filepath.Join(st.dir, name) }

func (c *Capturer) warnDropped(files []string) {
	for _, f := range files {
		c.opts.Log.Warn("dropped damaged spool file", "file", f)
	}
}
