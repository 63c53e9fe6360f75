package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// untouched wraps ErrForeign when the file is not as the last change left it,
// as far as page 1 tells: every writer changes it.
func (c *Copy) untouched() error {
	if err := c.renamed(); err != nil {
		return err
	}
	wal, err := framesBeside(c.path)
	if err != nil {
		return err
	}
	hot, err := hotJournal(c.path)
	if err != nil {
		return err
	}
	raw, err := c.look()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrForeign, err)
	}
	switch now := c.side(); {
	case wal:
		return fmt.Errorf("%w: it has a WAL", ErrForeign)
	case hot:
		return fmt.Errorf("%w: a writer left a journal", ErrForeign)
	case raw.shown != now.shown, raw.pages != now.pages:
		return fmt.Errorf("%w: page 1 or the size is not what it was", ErrForeign)
	}
	return nil
}

// dropWAL removes a WAL without frames, which would make whoever opens the copy
// next a reader of the WAL. Who had the database open while it was in WAL mode
// leaves it there: our locks keep SQLite from removing it. Nobody has the copy
// open.
func (c *Copy) dropWAL() error {
	frames, err := framesBeside(c.path)
	if err != nil {
		return err
	}
	if frames {
		return fmt.Errorf("%w: it has a WAL", ErrForeign)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(c.path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// renamed wraps ErrForeign when the file under the name is another one. A copy
// must be opened anew then.
func (c *Copy) renamed() error {
	open, err := c.file.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(c.path)
	if err != nil || !os.SameFile(open, named) {
		return errors.Join(fmt.Errorf("%w: another file is under its name; open it again", ErrForeign), err)
	}
	return nil
}

// resettle lets SQLite settle what is beside the file, which needs our locks.
func (c *Copy) resettle() error {
	err := c.locks.free()
	if err == nil {
		err = settle(c.path)
	}
	if !c.isFenced() {
		return err
	}
	ok, relocked := c.locks.reserve()
	if relocked == nil && !ok {
		relocked = errors.New("a writer came in between")
	}
	if relocked != nil {
		c.setFenced(false)
		relocked = fmt.Errorf("writers are not locked out any more: %w", relocked)
	}
	return errors.Join(err, relocked)
}

// rollback undoes a change that failed in the middle.
func (c *Copy) rollback() error {
	if err := c.resettle(); err != nil {
		return fmt.Errorf("roll back: %w", err)
	}
	found, err := c.identify()
	if err != nil {
		return fmt.Errorf("roll back: %w", err)
	}
	c.set(found)
	return nil
}

// convertWithin is how long a conversion waits for those who just close.
const convertWithin = time.Second

// toRollback takes a file out of WAL mode, which nobody else may have open.
func (c *Copy) toRollback(ctx context.Context) error {
	now := c.side()
	if now.pages == 0 || !now.shown.inWAL() {
		return nil
	}
	brief, cancel := context.WithTimeoutCause(ctx, convertWithin, inUse(c.path))
	defer cancel()
	w := &work{pages: nothing, next: now}
	w.next.shown = now.chain.show(now.nextCounter())
	if err := c.commit(brief, w); err != nil {
		// It is no copy yet: whoever has it open may write to it.
		return errors.Join(fmt.Errorf("take out of WAL mode: %w", err), c.note.clear())
	}
	return nil
}

// distrust forgets where the copy is when somebody put a WAL beside it, before
// SQLite makes that part of the file: page 1 need not tell.
func (c *Copy) distrust() error {
	frames, err := framesBeside(c.path)
	if err != nil || !frames || !c.note.known() || c.note.new.shown == c.note.new.chain {
		return err
	}
	return c.note.write(side{}, side{})
}

// Lock keeps writers out of the copy until Unlock: they get SQLITE_BUSY, readers
// go on. It waits for a writer that is at work.
func (c *Copy) Lock(ctx context.Context) error {
	if err := c.take(ctx); err != nil {
		return err
	}
	defer c.give()
	if err := c.reserve(ctx); err != nil {
		return fmt.Errorf("lock %s: %w", c.path, err)
	}
	c.setFenced(true)
	return nil
}

// Unlock lets writers in again.
func (c *Copy) Unlock(ctx context.Context) error {
	if err := c.take(ctx); err != nil {
		return err
	}
	defer c.give()
	c.setFenced(false)
	return c.locks.free()
}

func (c *Copy) isFenced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fenced
}

func (c *Copy) setFenced(fenced bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fenced = fenced
}
