package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/s3"
	"github.com/tidemark-io/tidemark/storage"
)

// call is one call of a bucket, and what it asks of the server among others.
type call struct {
	kind testbucket.Kind
	do   func(ctx context.Context, b *s3.Bucket) error
}

// calls are one for each kind of request. The bucket holds "old", "x" and "y",
// and sends more than 5 MiB in parts.
func calls() []call {
	long := numbered(5<<20 + 1)
	upload := func(ctx context.Context, b *s3.Bucket) error {
		_, err := b.Put(ctx, "long", bytes.NewReader(long), storage.Condition{Absent: true})
		return errors.Join(err, holds(ctx, b, "long", string(long)))
	}
	return []call{
		{testbucket.Put, func(ctx context.Context, b *s3.Bucket) error {
			_, err := b.Put(ctx, "new", strings.NewReader("content"), storage.Condition{Absent: true})
			return errors.Join(err, holds(ctx, b, "new", "content"))
		}},
		{testbucket.Get, func(ctx context.Context, b *s3.Bucket) error { return holds(ctx, b, "old", "old content") }},
		{testbucket.List, func(ctx context.Context, b *s3.Bucket) error { return lists(ctx, b, "old x y") }},
		{testbucket.Delete, func(ctx context.Context, b *s3.Bucket) error {
			return errors.Join(b.Delete(ctx, "x"), lists(ctx, b, "old y"))
		}},
		{testbucket.DeleteBatch, func(ctx context.Context, b *s3.Bucket) error {
			return errors.Join(b.Delete(ctx, "x", "y"), lists(ctx, b, "old"))
		}},
		{testbucket.Begin, upload},
		{testbucket.Part, upload},
		{testbucket.Complete, upload},
		{testbucket.Uploads, func(ctx context.Context, b *s3.Bucket) error { return b.CleanUploads(ctx) }},
	}
}

func holds(ctx context.Context, b *s3.Bucket, key, want string) error {
	body, _, err := b.Get(ctx, key, storage.Range{})
	if err != nil {
		return err
	}
	defer body.Close()
	got, err := io.ReadAll(body)
	if err == nil && string(got) != want {
		err = fmt.Errorf("%s holds %d other bytes", key, len(got))
	}
	return err
}

func lists(ctx context.Context, b *s3.Bucket, want string) error {
	var got []string
	for object, err := range b.List(ctx, "", "") {
		if err != nil {
			return err
		}
		got = append(got, object.Key)
	}
	if strings.Join(got, " ") != want {
		return fmt.Errorf("listed %q, want %q", got, want)
	}
	return nil
}

// furnished is a bucket for calls, behind a proxy of its own.
func furnished(t *testing.T, gateway *testbucket.Server, prefix, settings string, retry s3.Retry) (*s3.Bucket, *testbucket.Proxy) {
	t.Helper()
	p := testbucket.NewProxy(t, gateway.Endpoint())
	b := openFor(t, p.URL(prefix)+"&part-size=5MiB"+settings, retry)
	store(t, b, "old", "old content")
	store(t, b, "x", "x")
	store(t, b, "y", "y")
	return b, p
}

func TestStormsOfSomeSecondsPass(t *testing.T) {
	gateway := testbucket.Gateway(t)
	var group errgroup.Group
	for code, name := range map[int]string{500: "InternalError", 503: "SlowDown", 429: "TooManyRequests",
		408: "", 409: "OperationAborted", 504: "", 400: "RequestTimeout", 200: "InternalError"} {
		for _, c := range calls() {
			b, p := furnished(t, gateway, fmt.Sprint(code, "/", c.kind), "", s3.Retry{For: time.Minute})
			strikes := 6
			if c.kind == testbucket.Put || c.kind == testbucket.Begin {
				strikes = 3 // who writes hears of a longer storm
			}
			p.StormNext(strikes, code, name, c.kind)
			group.Go(func() error {
				if err := c.do(t.Context(), b); err != nil {
					return fmt.Errorf("%s under a storm of %d %s: %w", c.kind, code, name, err)
				}
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	if n := uploads(t, gateway); n != 0 {
		t.Errorf("%d uploads left", n)
	}
}

func TestStormsThatDoNotPassAreErrors(t *testing.T) {
	gateway := testbucket.Gateway(t)
	for code, name := range map[int]string{500: "InternalError", 503: "SlowDown", 409: "", 200: "InternalError"} {
		for _, c := range calls() {
			b, p := furnished(t, gateway, fmt.Sprint(code, "/", c.kind), "", s3.Retry{Attempts: 1})
			p.Storm(code, name, c.kind)
			err := c.do(t.Context(), b)
			if err == nil || !strings.Contains(err.Error(), "s3://tidemark/") ||
				code != 200 && !strings.Contains(err.Error(), fmt.Sprint("HTTP ", code)) {
				t.Errorf("%s under %d: got %v", c.kind, code, err)
			}
			if errors.Is(err, storage.ErrPrecondition) || errors.Is(err, storage.ErrForbidden) {
				t.Errorf("%s under %d: %v is taken for a refusal", c.kind, code, err)
			}
		}
	}
	if n := uploads(t, gateway); n != 0 {
		t.Errorf("%d uploads left", n)
	}
}

func TestAttemptsAreLimitedForThoseWhoAsk(t *testing.T) {
	gateway := testbucket.Gateway(t)
	for want := 1; want <= 3; want++ {
		b, p := furnished(t, gateway, fmt.Sprint(want), "", s3.Retry{Attempts: want})
		before := p.Requests("PUT")
		p.Status(500)
		if _, err := b.Put(t.Context(), "old", strings.NewReader("x"), storage.Condition{}); err == nil {
			t.Error("put succeeded")
		}
		if got := p.Requests("PUT") - before; got != want {
			t.Errorf("%d attempts, want %d", got, want)
		}
	}
}

// Starting a long upload again costs more than waiting.
func TestPartsAreRepeatedForLonger(t *testing.T) {
	gateway := testbucket.Gateway(t)
	var group errgroup.Group
	for _, c := range calls() {
		whole, part := c.kind == testbucket.Put, c.kind == testbucket.Part
		if !whole && !part {
			continue
		}
		b, p := furnished(t, gateway, string(c.kind), "", s3.Retry{For: 3 * time.Second})
		p.StormNext(9, 500, "InternalError", c.kind)
		group.Go(func() error {
			if err := c.do(t.Context(), b); (err == nil) != part {
				return fmt.Errorf("%s: got %w", c.kind, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}
