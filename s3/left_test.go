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
	before := p.Requests(http.MethodDelete)
	for range 3 {
		put(t, b)
	}
	if n := p.Requests(http.MethodDelete) - before; n != 1 {
		t.Errorf("the abort was asked for %d times, want once", n)
	}
	if n := uploads(t, gateway); n != 1 {
		t.Errorf("%d uploads left, want the one whose abort is forbidden", n)
	}
}

// leavesAnUpload returns a bucket with an upload that could not be aborted. What
// it asked for has arrived at the proxy: no request of it is counted later.
func leavesAnUpload(t *testing.T) (*testbucket.Server, *testbucket.Proxy, *s3.Bucket) {
	t.Helper()
	gateway := testbucket.Gateway(t)
	p := testbucket.NewProxy(t, gateway.Endpoint())
	b := openFor(t, p.URL("p")+"&part-size=5MiB", s3.Retry{For: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	aborted := make(chan struct{}, 2)
	p.Hang(testbucket.Part, testbucket.Abort)
	p.Inject(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch testbucket.KindOf(r) {
			case testbucket.Part:
				cancel()
			case testbucket.Abort:
				aborted <- struct{}{}
			}
			next.ServeHTTP(w, r)
		})
	})
	if _, err := b.Put(ctx, "a", bytes.NewReader(numbered(6<<20)), storage.Condition{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	select {
	case <-aborted:
	case <-time.After(30 * time.Second):
		t.Fatal("no abort arrived")
	}
	return gateway, p, b
}

func put(t *testing.T, b *s3.Bucket) {
	t.Helper()
	if _, err := b.Put(t.Context(), "b", strings.NewReader("b"), storage.Condition{}); err != nil {
		t.Fatal(err)
	}
}
