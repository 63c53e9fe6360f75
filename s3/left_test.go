package s3_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/s3"
	"github.com/tidemark-io/tidemark/storage"
)

func TestAnUploadThatCouldNotBeAbortedIsWithTheNextWrite(t *testing.T) {
	gateway, p, b := leavesAnUpload(t)
	for _, step := range []struct {
		heal bool
		want int
	}{{false, 1}, {true, 0}} {
		if step.heal {
			p.Heal()
		}
		put(t, b)
		if n := uploads(t, gateway); n != step.want {
			t.Errorf("healed %t: %d uploads left, want %d", step.heal, n, step.want)
		}
	}
}

func TestAnUploadThatMayNotBeAbortedIsLeftAlone(t *testing.T) {
	gateway, p, b := leavesAnUpload(t)
	p.Heal()
	p.Storm(http.StatusForbidden, "AccessDenied", testbucket.Abort)
	put(t, b) // asks for the abort, and is refused
	// A request that was under way when its caller gave up may be counted late,
	// so that one write which asks for no abort is what tells.
	for end := time.Now().Add(10 * time.Second); ; {
		before := p.Requests(http.MethodDelete)
		put(t, b)
		if p.Requests(http.MethodDelete) == before {
			break
		}
		if time.Now().After(end) {
			t.Fatal("each write asks again for the abort that is forbidden")
		}
	}
	if n := uploads(t, gateway); n != 1 {
		t.Errorf("%d uploads left, want the one whose abort is forbidden", n)
	}
}

// leavesAnUpload returns a bucket with an upload that could not be aborted.
func leavesAnUpload(t *testing.T) (*testbucket.Server, *testbucket.Proxy, *s3.Bucket) {
	t.Helper()
	gateway := testbucket.Gateway(t)
	p := testbucket.NewProxy(t, gateway.Endpoint())
	b := openFor(t, p.URL("p")+"&part-size=5MiB", s3.Retry{For: time.Hour})
	p.Storm(http.StatusServiceUnavailable, "SlowDown", testbucket.Part, testbucket.Abort)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := b.Put(ctx, "a", bytes.NewReader(numbered(6<<20)), storage.Condition{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	return gateway, p, b
}

func put(t *testing.T, b *s3.Bucket) {
	t.Helper()
	if _, err := b.Put(t.Context(), "b", strings.NewReader("b"), storage.Condition{}); err != nil {
		t.Fatal(err)
	}
}
