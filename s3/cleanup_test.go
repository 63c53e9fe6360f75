package s3_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/storage"
)

// abandon leaves an unfinished upload under a prefix, as a killed process does.
func abandon(t *testing.T, p *testbucket.Proxy, prefix string) {
	t.Helper()
	b := open(t, p.URL(prefix)+"&part-size=5MiB")
	p.Inject(only("PUT", status(http.StatusForbidden, "")))
	p.Inject(only("DELETE", status(http.StatusForbidden, "")))
	if _, err := b.Put(t.Context(), "a", bytes.NewReader(numbered(6<<20)), storage.Condition{}); err == nil {
		t.Fatal("put succeeded")
	}
	p.Heal()
}

func TestOldUploadsUnderThePrefixAreCleaned(t *testing.T) {
	gateway := testbucket.Gateway(t)
	p := testbucket.NewProxy(t, gateway.Endpoint())
	abandon(t, p, "p")
	abandon(t, p, "p2")
	b := open(t, p.URL("p"))
	for _, c := range []struct {
		year string
		want int
	}{{"", 2}, {"2001", 1}} {
		p.Inject(backdate(c.year))
		if err := b.CleanUploads(t.Context()); err != nil {
			t.Errorf("clean: %v", err)
		}
		if n := uploads(t, gateway); n != c.want {
			t.Errorf("year %q: %d uploads left, want %d", c.year, n, c.want)
		}
	}
}

func TestOneListingCleansManyPartsAndNothingBeside(t *testing.T) {
	gateway := testbucket.Gateway(t)
	p := testbucket.NewProxy(t, gateway.Endpoint())
	for _, prefix := range []string{"lake/one", "lake/two", "lake/two2", "lake/o", "elsewhere"} {
		abandon(t, p, prefix)
	}
	p.Inject(backdate("2001"))
	listed := p.Requests("GET")
	b := open(t, p.URL("lake"))
	parts := []string{"one", "/two/", "none"}
	for i := range 2000 {
		parts = append(parts, fmt.Sprint("many/", i))
	}
	if err := b.CleanUploads(t.Context(), parts...); err != nil {
		t.Fatal(err)
	}
	if n := uploads(t, gateway); n != 3 {
		t.Errorf("%d uploads left, want those of three neighbors", n)
	}
	if n := p.Requests("GET") - listed; n != 1 {
		t.Errorf("%d listings, want 1", n)
	}
}

// backdate changes the year in which uploads began.
func backdate(year string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if year == "" || !r.URL.Query().Has("uploads") {
				next.ServeHTTP(w, r)
				return
			}
			reply := httptest.NewRecorder()
			next.ServeHTTP(reply, r)
			began := regexp.MustCompile(`<Initiated>\d{4}`)
			_, _ = io.WriteString(w, began.ReplaceAllString(reply.Body.String(), "<Initiated>"+year))
		})
	}
}
