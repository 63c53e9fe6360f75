package s3_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/s3"
	"github.com/tidemark-io/tidemark/storage"
)

// attempt is one call of each kind, by name.
func attempt(t *testing.T, b *s3.Bucket) map[string]error {
	t.Helper()
	_, get := load(t, b, "a/key")
	_, put := b.Put(t.Context(), "a/key", strings.NewReader("x"), storage.Condition{})
	_, swap := b.Put(t.Context(), "a/key", strings.NewReader("x"), storage.Condition{ETag: `"e"`})
	var list error
	for _, list = range b.List(t.Context(), "a/key", "") {
	}
	return map[string]error{
		"get": get, "put": put, "swap": swap, "list": list,
		"delete": b.Delete(t.Context(), "a/key"), "clean uploads": b.CleanUploads(t.Context()),
	}
}

func TestErrorsSayWhatAndWhere(t *testing.T) {
	for _, c := range []struct {
		name, hint string
		fault      http.HandlerFunc
		want       error
	}{
		{"no bucket", "bucket does not exist", status(404, "<Error><Code>NoSuchBucket</Code><Message>gone</Message></Error>"), nil},
		{"denied", "AccessDenied: not yours", status(403, "<Error><Code>AccessDenied</Code><Message>not\n  yours</Message></Error>"), storage.ErrForbidden},
		{"other region", "another region", status(301, "<Error><Code>PermanentRedirect</Code><Message>use eu</Message></Error>"), nil},
		{"no service", "without an S3 error", status(404, "<html>nginx</html>"), nil},
		{"bad request", "InvalidArgument", status(400, "<Error><Code>InvalidArgument</Code><Message>no</Message></Error>"), nil},
	} {
		b, p := faulty(t, "p")
		p.Inject(func(http.Handler) http.Handler { return c.fault })
		for call, err := range attempt(t, b) {
			if err == nil || !strings.Contains(err.Error(), c.hint) {
				t.Errorf("%s: %s: got %v, want one that says %q", c.name, call, err, c.hint)
				continue
			}
			if call != "clean uploads" && !strings.Contains(err.Error(), "s3://tidemark/p/a/key") {
				t.Errorf("%s: %s: %q does not name the object", c.name, call, err)
			}
			for _, sentinel := range []error{storage.ErrNotFound, storage.ErrForbidden, storage.ErrPrecondition} {
				if errors.Is(err, sentinel) != errors.Is(c.want, sentinel) {
					t.Errorf("%s: %s: %v is %v: %t", c.name, call, err, sentinel, errors.Is(err, sentinel))
				}
			}
			if strings.Contains(err.Error(), testbucket.SecretKey) {
				t.Errorf("%s: %s: %q has the secret in it", c.name, call, err)
			}
		}
		if got := p.Requests(""); got != 6 {
			t.Errorf("%s: %d requests for 6 calls that cannot succeed", c.name, got)
		}
	}
}

func TestBucketThatDoesNotExistIsNoEmptyBucket(t *testing.T) {
	gateway := testbucket.Gateway(t)
	b := open(t, strings.Replace(gateway.URL("p"), "s3://"+testbucket.Bucket, "s3://other-bucket", 1))
	for call, err := range attempt(t, b) {
		if err == nil || errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrPrecondition) {
			t.Errorf("%s: got %v", call, err)
		}
	}
}

func TestDeleteNamesTheKeysThatFailed(t *testing.T) {
	b, p := faulty(t, "p")
	p.Inject(only(http.MethodPost, write(`<DeleteResult>
		<Error><Key>p/a</Key><Code>AccessDenied</Code><Message>locked</Message></Error>
		<Error><Key>p/b</Key><Code>InternalError</Code><Message>try later</Message></Error>
		<Error><Key>p/c</Key><Code>NoSuchKey</Code></Error>
		<Deleted><Key>p/d</Key></Deleted></DeleteResult>`)))
	err := b.Delete(t.Context(), "a", "b", "c", "d", "e")
	if err == nil || !errors.Is(err, storage.ErrForbidden) {
		t.Fatalf("got %v", err)
	}
	for name, want := range map[string]bool{"p/a: AccessDenied: locked": true, "p/b: InternalError": true, "p/c": false, "p/d": false, "p/e: NoAnswer": true} {
		if strings.Contains(err.Error(), name) != want {
			t.Errorf("%q in %q: want %t", name, err, want)
		}
	}
}

func TestBodyThatCannotBeReadIsNotTriedAgain(t *testing.T) {
	b, p := faulty(t, "p")
	broken := errors.New("disk on fire")
	for _, body := range []io.ReadSeeker{
		brokenBody{strings.NewReader("content"), broken},
		onlySeeks{brokenBody{strings.NewReader("content"), broken}},
	} {
		_, err := b.Put(t.Context(), "a", body, storage.Condition{})
		if !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	}
	if got := p.Requests(""); got > 0 {
		t.Errorf("%d requests", got)
	}
}

// brokenBody has a size, but no content.
type brokenBody struct {
	*strings.Reader
	err error
}

func (b brokenBody) Read([]byte) (int, error)           { return 0, b.err }
func (b brokenBody) ReadAt([]byte, int64) (int, error)  { return 0, b.err }
func (b brokenBody) WriteTo(w io.Writer) (int64, error) { return 0, b.err }
