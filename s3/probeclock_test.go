package s3_test

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/tidemark-io/tidemark/storage"
)

// misdated has a clock that is an hour ahead.
type misdated struct{ storage.Bucket }

func (m *misdated) Get(ctx context.Context, key string, part storage.Range) (io.ReadCloser, storage.Object, error) {
	body, object, err := m.Bucket.Get(ctx, key, part)
	object.Now = time.Now().Add(time.Hour)
	return body, object, err
}

// forgetful lists nothing.
type forgetful struct{ storage.Bucket }

func (f *forgetful) List(context.Context, string, string) iter.Seq2[storage.Object, error] {
	return func(func(storage.Object, error) bool) {}
}
