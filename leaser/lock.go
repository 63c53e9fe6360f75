package leaser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tidemark-io/tidemark/storage"
)

// Key is the name of the lock below the root of the replica.
const Key = "lock.json"

// lock is the object in the bucket.
type lock struct{ bucket storage.Bucket }

// sight is the lock as an answer showed it.
type sight struct {
	absent bool
	etag   string
	record Record        // zero where broken is set
	broken error         // the content is no lock
	age    time.Duration // since it was written, by the service's clock; 0: unknown
}

func (l lock) look(ctx context.Context) (sight, error) {
	body, object, err := l.bucket.Get(ctx, Key, storage.Range{})
	if errors.Is(err, storage.ErrNotFound) {
		return sight{absent: true}, nil
	}
	if err != nil {
		return sight{}, fmt.Errorf("read the lock: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(body, maxRecord+1))
	if err := errors.Join(err, body.Close()); err != nil {
		return sight{}, fmt.Errorf("read the lock: %w", err)
	}
	if object.ETag == "" {
		return sight{}, errors.New("read the lock: the service tells no ETag")
	}
	s := sight{etag: object.ETag}
	s.record, s.broken = ParseRecord(text)
	if !object.Now.IsZero() && !object.ModTime.IsZero() {
		// Both times are whole seconds of one clock.
		s.age = max(0, object.Now.Sub(object.ModTime)-time.Second)
	}
	return s, nil
}

func (l lock) write(ctx context.Context, r Record, cond storage.Condition) (etag string, err error) {
	text, err := r.encode()
	if err != nil {
		return "", err
	}
	object, err := l.bucket.Put(ctx, Key, bytes.NewReader(text), cond)
	if err != nil {
		return "", fmt.Errorf("write the lock: %w", err)
	}
	if object.ETag == "" {
		return "", errors.New("write the lock: the service tells no ETag")
	}
	return object.ETag, nil
}

// Read returns the lock in b and its ETag. It wraps storage.ErrNotFound where
// nobody has ever had the lease, and ErrUnreadable, with the ETag.
func Read(ctx context.Context, b storage.Bucket) (Record, string, error) {
	s, err := lock{b}.look(ctx)
	switch {
	case err != nil:
		return Record{}, "", err
	case s.absent:
		return Record{}, "", fmt.Errorf("read %s/%s: %w", b, Key, storage.ErrNotFound)
	case s.broken != nil:
		return Record{}, s.etag, fmt.Errorf("read %s/%s: %w", b, Key, s.broken)
	}
	return s.record, s.etag, nil
}

// Live tells whether a process may hold the lock, or be about to take it, as far
// as its times and the clock of this machine tell: never a reason to take it.
func (r Record) Live(now time.Time) bool {
	return r.State != Released && now.Before(r.ExpiresAt.Add(r.TTL()))
}

// Break releases the lock that Read returned with etag, whoever holds it. A
// holder that is alive notices at its next renewal; until then two processes
// may let their applications write, of which one sets its commits aside. It
// wraps storage.ErrPrecondition when the lock has changed.
func Break(ctx context.Context, b storage.Bucket, etag, who string) error {
	s, err := lock{b}.look(ctx)
	switch {
	case err != nil:
		return err
	case s.absent:
		return fmt.Errorf("break %s/%s: %w", b, Key, storage.ErrNotFound)
	case s.etag != etag:
		return fmt.Errorf("break %s/%s: %w: the lock has changed", b, Key, storage.ErrPrecondition)
	}
	r := s.record
	if s.broken != nil {
		r.Generation = 1
	}
	r.State, r.Owner, r.Nonce, r.BootID = Released, "broken by "+who, newNonce(), ""
	r.Seq++
	r.Successor, r.Request, r.Advertise = "", "", ""
	if _, err := (lock{b}).write(ctx, r, storage.Condition{ETag: etag}); err != nil {
		return fmt.Errorf("break %s/%s: %w", b, Key, err)
	}
	return nil
}
