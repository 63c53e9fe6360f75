package compaction

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/storage"
)

const (
	fetchTries    = 6        // attempts without progress
	fetchProgress = 16 << 10 // bytes that count as progress
)

// errShort says that an object is not as long as it was listed: it was only
// just written and the store does not show all of it yet, or it is damaged.
var errShort = errors.New("object has another size than it was listed with")

// fetch writes a part of a file to w. What arrived is kept when a connection
// breaks; it gives up after some attempts that bring next to nothing. A file
// that is not there is asked for again too: it may be new.
func (m *Merger) fetch(ctx context.Context, f ltx.FileInfo, part storage.Range, w io.Writer) error {
	pause := newPauses()
	for tries := 1; part.Length > 0; tries++ {
		n, err := m.fetchOnce(ctx, f, part, w)
		part.Offset, part.Length = part.Offset+n, part.Length-n
		switch {
		case part.Length == 0:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, storage.ErrForbidden), isWriteError(err):
			return err
		case n >= fetchProgress:
			tries = 0
			pause.Reset()
		case tries >= fetchTries:
			return fmt.Errorf("after %d attempts: %w", tries, err)
		}
		if err := wait(ctx, pause.NextBackOff()); err != nil {
			return err
		}
	}
	return nil
}

func (m *Merger) fetchOnce(ctx context.Context, f ltx.FileInfo, part storage.Range, w io.Writer) (int64, error) {
	key := m.replica.Key(f)
	body, object, err := m.bucket.Get(ctx, key, part)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", key, err)
	}
	defer body.Close()
	if object.Size != f.Size {
		return 0, fmt.Errorf("read %s: %w: %d bytes, not %d", key, errShort, object.Size, f.Size)
	}
	n, err := io.Copy(writer{w}, io.LimitReader(body, part.Length))
	if err == nil && n < part.Length {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return n, fmt.Errorf("read %s at %d: %w", key, part.Offset+n, err)
	}
	return n, nil
}

// writer marks the errors of writing, which another attempt does not mend.
type writer struct{ io.Writer }

type writeError struct{ error }

func (e writeError) Unwrap() error { return e.error }

func (w writer) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if err != nil {
		return n, writeError{err}
	}
	return n, nil
}

func isWriteError(err error) bool {
	var e writeError
	return errors.As(err, &e)
}

func newPauses() *backoff.ExponentialBackOff {
	pause := &backoff.ExponentialBackOff{
		InitialInterval: 100 * time.Millisecond, MaxInterval: 2 * time.Second, Multiplier: 2, RandomizationFactor: 0.5,
	}
	pause.Reset()
	return pause
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
