package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/storage"
)

const (
	fetchTries    = 6        // attempts without progress
	fetchProgress = 16 << 10 // bytes that count as progress
	roundPiece    = 1 << 20  // bytes of one request when a file is streamed
)

// fetch fills b with the part of a file that begins at offset. What arrived is
// kept when a connection breaks; it gives up after some attempts that bring
// next to nothing.
func (r *Replica) fetch(ctx context.Context, f ltx.FileInfo, b []byte, offset int64) error {
	pause := &backoff.ExponentialBackOff{
		InitialInterval: defaultMinBackoff, MaxInterval: time.Second, Multiplier: 2, RandomizationFactor: 0.5,
	}
	pause.Reset()
	for tries := 1; ; tries++ {
		n, err := r.fetchOnce(ctx, f, b, offset)
		b, offset = b[n:], offset+int64(n)
		switch {
		case len(b) == 0:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case final(err):
			return err
		case n >= fetchProgress:
			tries = 0
			pause.Reset()
		case tries >= fetchTries:
			return fmt.Errorf("after %d attempts: %w", tries, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause.NextBackOff()):
		}
	}
}

// final tells that repeating the request is of no use.
func final(err error) bool {
	return errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrForbidden) || errors.Is(err, ltx.ErrCorrupt)
}

func (r *Replica) fetchOnce(ctx context.Context, f ltx.FileInfo, b []byte, offset int64) (int, error) {
	part := storage.Range{Offset: offset, Length: int64(len(b))}
	body, object, err := r.bucket.Get(ctx, r.Key(f), part)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", r.Key(f), err)
	}
	defer body.Close()
	if object.Size != f.Size {
		return 0, fmt.Errorf("read %s: %w: it has %d bytes and was listed with %d", r.Key(f), ltx.ErrCorrupt, object.Size, f.Size)
	}
	n, err := io.ReadFull(body, b)
	if err != nil {
		return n, fmt.Errorf("read %s at %d: got %d of %d bytes: %w", r.Key(f), offset, n, len(b), err)
	}
	return n, nil
}

// fetchFunc is fetch of one file; the reading side of a restore counts bytes
// in it.
type fetchFunc func(b []byte, offset int64) error

// rounds streams a file by several requests at a time.
type rounds struct {
	next func([]byte) ([]byte, error) // what follows, in the given buffer
	buf  []byte
	rest []byte
}

func newRounds(fetch fetchFunc, size int64, parallelism int) *rounds {
	offset := int64(0)
	return &rounds{
		buf: make([]byte, min(size, int64(parallelism)*roundPiece)),
		next: func(buf []byte) ([]byte, error) {
			buf = buf[:min(int64(len(buf)), size-offset)]
			if len(buf) == 0 {
				return nil, io.EOF
			}
			var g errgroup.Group
			for at := 0; at < len(buf); at += roundPiece {
				start := offset + int64(at)
				g.Go(func() error { return fetch(buf[at:min(at+roundPiece, len(buf))], start) })
			}
			offset += int64(len(buf))
			return buf, g.Wait()
		},
	}
}

// Read implements io.Reader.
func (s *rounds) Read(b []byte) (int, error) {
	if len(s.rest) == 0 {
		rest, err := s.next(s.buf)
		if err != nil {
			return 0, err
		}
		s.rest = rest
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// tail reads a file at random, keeping its end, of which several pieces are
// asked for one after the other.
type tail struct {
	fetch fetchFunc
	start int64
	kept  []byte
}

// tailSize is a guess at how much of a file holds its index and trailer.
func tailSize(size int64) int64 { return min(size, max(64<<10, size/128), 8<<20) }

func newTail(fetch fetchFunc, size int64) (*tail, error) {
	t := &tail{fetch: fetch, start: size - tailSize(size), kept: make([]byte, tailSize(size))}
	return t, fetch(t.kept, t.start)
}

// ReadAt implements io.ReaderAt.
func (t *tail) ReadAt(b []byte, offset int64) (int, error) {
	if offset >= t.start {
		n := copy(b, t.kept[min(offset-t.start, int64(len(t.kept))):])
		if n < len(b) {
			return n, io.EOF
		}
		return n, nil
	}
	missing := min(int64(len(b)), t.start-offset)
	if err := t.fetch(b[:missing], offset); err != nil {
		return 0, err
	}
	n, err := 0, error(nil)
	if missing < int64(len(b)) {
		n, err = t.ReadAt(b[missing:], t.start)
	}
	return int(missing) + n, err
}
