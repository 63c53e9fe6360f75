package leaser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/tidemark-io/tidemark/storage"
)

// Fence is b for who may write only while the term of t lasts: Put and Delete
// wrap ErrLost once it is over, and are cut short when it ends under way. What
// was sent before may still be stored.
func Fence(b storage.Bucket, t *Lease) storage.Bucket { return &fenced{Bucket: b, lease: t} }

type fenced struct {
	storage.Bucket
	lease *Lease
}

// LogValue is that of the bucket.
func (f *fenced) LogValue() slog.Value {
	if v, ok := f.Bucket.(slog.LogValuer); ok {
		return v.LogValue()
	}
	return slog.StringValue(f.String())
}

func (f *fenced) Put(ctx context.Context, key string, body io.ReadSeeker, cond storage.Condition) (storage.Object, error) {
	held, done := f.lease.WhileHeld(ctx)
	defer done()
	if held.Err() != nil && ctx.Err() == nil {
		return storage.Object{}, fmt.Errorf("put %s/%s: %w", f, key, context.Cause(held))
	}
	object, err := f.Bucket.Put(held, key, body, cond)
	return object, f.explain(held, err)
}

func (f *fenced) Delete(ctx context.Context, keys ...string) error {
	held, done := f.lease.WhileHeld(ctx)
	defer done()
	if held.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("delete from %s: %w", f, context.Cause(held))
	}
	return f.explain(held, f.Bucket.Delete(held, keys...))
}

// explain adds the loss that cut an operation short.
func (f *fenced) explain(held context.Context, err error) error {
	if cause := context.Cause(held); err != nil && errors.Is(cause, ErrLost) && !errors.Is(err, ErrLost) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
