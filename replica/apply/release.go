package apply

import (
	"context"
	"fmt"
)

// Release ends the following for good: the file is the chain's, byte for byte,
// with its page sums, nothing of the copy is left and all is closed. Readers
// delay it like a change. After an error the copy is still open.
func (c *Copy) Release(ctx context.Context) error {
	if err := c.take(ctx); err != nil {
		return err
	}
	err := c.release(ctx)
	if err != nil {
		c.give()
		return fmt.Errorf("release %s: %w", c.path, err)
	}
	return nil
}

func (c *Copy) release(ctx context.Context) error {
	now := c.side()
	if now.pos.IsZero() || now.pos.TXID == 0 {
		return ErrUnknown
	}
	if err := c.trueSums(ctx); err != nil {
		return err
	}
	if now.shown != now.chain {
		w := &work{pages: nothing, next: now}
		w.next.shown = now.chain
		if err := c.commit(ctx, w); err != nil {
			return err
		}
	} else if err := c.untouched(); err != nil {
		return err
	}
	if err := c.note.remove(); err != nil {
		return err
	}
	return c.close()
}
