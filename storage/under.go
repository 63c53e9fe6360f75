package storage

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"slices"
	"strings"
)

// Under returns the part of b below prefix: its keys are relative to the prefix,
// and a neighbor whose name begins with the prefix is no part of it. It costs
// nothing but itself, so many may share one bucket. An empty prefix is b. A
// prefix that is no key makes every operation an error.
func Under(b Bucket, prefix string) Bucket {
	prefix = strings.Trim(prefix, "/")
	if prefix == "" {
		return b
	}
	return &under{bucket: b, prefix: prefix}
}

type under struct {
	bucket Bucket
	prefix string
}

// full is the key in the bucket. A bad key stays one behind the prefix.
func (u *under) full(key string) string { return u.prefix + "/" + key }

// relative takes the key from the bucket's point of view to that of u.
func (u *under) relative(o Object) Object {
	o.Key = strings.TrimPrefix(o.Key, u.prefix+"/")
	return o
}

// String returns the URL of the prefix.
func (u *under) String() string { return u.bucket.String() + "/" + u.prefix }

// LogValue is that of the bucket, with the whole prefix.
func (u *under) LogValue() slog.Value {
	value := logValue(u.bucket)
	if value.Kind() != slog.KindGroup {
		return slog.StringValue(u.String())
	}
	attrs := slices.Clone(value.Group())
	for i, a := range attrs {
		if a.Key == "prefix" {
			attrs[i].Value = slog.StringValue(strings.TrimPrefix(a.Value.String()+"/"+u.prefix, "/"))
		}
	}
	return slog.GroupValue(attrs...)
}

// logValue is a bucket as the log shows it.
func logValue(b Bucket) slog.Value {
	if v, ok := b.(slog.LogValuer); ok {
		return v.LogValue().Resolve()
	}
	return slog.StringValue(b.String())
}

func (u *under) Get(ctx context.Context, key string, part Range) (io.ReadCloser, Object, error) {
	body, object, err := u.bucket.Get(ctx, u.full(key), part)
	return body, u.relative(object), err
}

func (u *under) Put(ctx context.Context, key string, body io.ReadSeeker, cond Condition) (Object, error) {
	object, err := u.bucket.Put(ctx, u.full(key), body, cond)
	return u.relative(object), err
}

func (u *under) List(ctx context.Context, prefix, after string) iter.Seq2[Object, error] {
	if after != "" {
		after = u.full(after)
	}
	return func(yield func(Object, error) bool) {
		for object, err := range u.bucket.List(ctx, u.full(prefix), after) {
			if err == nil && !strings.HasPrefix(object.Key, u.prefix+"/") {
				err = fmt.Errorf("list %s/%s: the bucket listed %q out of place", u, prefix, object.Key)
			}
			if err != nil {
				yield(Object{}, err)
				return
			}
			if !yield(u.relative(object), nil) {
				return
			}
		}
	}
}

func (u *under) Delete(ctx context.Context, keys ...string) error {
	full := make([]string, len(keys))
	for i, key := range keys {
		full[i] = u.full(key)
	}
	return u.bucket.Delete(ctx, full...)
}
