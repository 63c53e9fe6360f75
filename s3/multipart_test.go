package s3_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/s3"
	"github.com/tidemark-io/tidemark/storage"
)

// uploads counts the multipart uploads a service holds.
func uploads(t *testing.T, gateway *testbucket.Server) int {
	t.Helper()
	client := sdk.New(sdk.Options{
		BaseEndpoint: aws.String(gateway.Endpoint()), Region: testbucket.Region, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(testbucket.AccessKey, testbucket.SecretKey, ""),
	})
	out, err := client.ListMultipartUploads(t.Context(), &sdk.ListMultipartUploadsInput{Bucket: aws.String(testbucket.Bucket)})
	if err != nil {
		t.Fatal(err)
	}
	return len(out.Uploads)
}

// numbered is a body in which every part differs.
func numbered(size int) []byte {
	content := make([]byte, size)
	for i := range content {
		content[i] = byte(i>>16) ^ byte(i)
	}
	return content
}

func TestPartSizeIsHonored(t *testing.T) {
	p := testbucket.NewProxy(t, testbucket.Gateway(t).Endpoint())
	b := open(t, p.URL("p")+"&part-size=6MiB&concurrency=3")
	content := numbered(30<<20 + 7)
	for _, body := range []io.ReadSeeker{bytes.NewReader(content), onlySeeks{bytes.NewReader(content)}} {
		before := p.Requests("PUT")
		stored, err := b.Put(t.Context(), "a", body, storage.Condition{})
		if err != nil {
			t.Fatal(err)
		}
		if parts := p.Requests("PUT") - before; parts != 6 {
			t.Errorf("%d parts, want 6", parts)
		}
		got, err := load(t, b, "a")
		if err != nil || got != string(content) || stored.Size != int64(len(content)) {
			t.Errorf("got %d bytes, %v; put said %d", len(got), err, stored.Size)
		}
	}
}

func TestConditionsHoldForParts(t *testing.T) {
	gateway := testbucket.Gateway(t)
	b := open(t, gateway.URL("p")+"&part-size=5MiB")
	content := numbered(11 << 20)
	first, err := b.Put(t.Context(), "a", bytes.NewReader(content), storage.Condition{Absent: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, cond := range []storage.Condition{{Absent: true}, {ETag: `"other"`}} {
		if _, err := b.Put(t.Context(), "a", bytes.NewReader(content), cond); !errors.Is(err, storage.ErrPrecondition) {
			t.Errorf("%+v: got %v", cond, err)
		}
	}
	if _, err := b.Put(t.Context(), "a", bytes.NewReader(content[1:]), storage.Condition{ETag: first.ETag}); err != nil {
		t.Errorf("swap: %v", err)
	}
	if n := uploads(t, gateway); n != 0 {
		t.Errorf("%d uploads left", n)
	}
}

// A key can be taken while parts are under way: then only the condition of the
// last request protects it.
func TestConditionHoldsAtTheEndOfAnUpload(t *testing.T) {
	gateway := testbucket.Gateway(t)
	p := testbucket.NewProxy(t, gateway.Endpoint())
	b, other := open(t, p.URL("p")+"&part-size=5MiB"), open(t, gateway.URL("p"))
	var taken atomic.Bool
	p.Inject(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut && !taken.Swap(true) {
				store(t, other, "a", "the other's")
			}
			next.ServeHTTP(w, r)
		})
	})
	_, err := b.Put(t.Context(), "a", bytes.NewReader(numbered(11<<20)), storage.Condition{Absent: true})
	if !errors.Is(err, storage.ErrPrecondition) {
		t.Errorf("got %v", err)
	}
	if got, err := load(t, b, "a"); got != "the other's" || err != nil {
		t.Errorf("stored %d bytes, %v", len(got), err)
	}
	if n := uploads(t, gateway); n != 0 {
		t.Errorf("%d uploads left", n)
	}
}

func TestFailedUploadIsAborted(t *testing.T) {
	gateway := testbucket.Gateway(t)
	p := testbucket.NewProxy(t, gateway.Endpoint())
	b := open(t, p.URL("p")+"&part-size=5MiB")
	for name, fault := range map[string]func(http.Handler) http.Handler{
		"part refused": only("PUT", status(http.StatusForbidden, "<Error><Code>AccessDenied</Code></Error>")),
		"error under status 200": only("POST", status(http.StatusOK,
			"<?xml version=\"1.0\"?>\n<Error><Code>InternalError</Code><Message>said the test</Message></Error>")),
		"empty answer": only("POST", write("")),
	} {
		p.Heal()
		p.Inject(fault)
		_, err := b.Put(t.Context(), "a", bytes.NewReader(numbered(11<<20)), storage.Condition{Absent: true})
		if err == nil || !strings.Contains(err.Error(), "put s3://tidemark/p/a") || errors.Is(err, storage.ErrPrecondition) {
			t.Errorf("%s: got %v", name, err)
		}
		if n := uploads(t, gateway); n != 0 {
			t.Errorf("%s: %d uploads left", name, n)
		}
	}
	p.Heal()
	if _, err := load(t, b, "a"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v, want that nothing was stored", err)
	}
}

func TestAnAbortIsAskedForUntilItIsDone(t *testing.T) {
	gateway := testbucket.Gateway(t)
	p := testbucket.NewProxy(t, gateway.Endpoint())
	b := open(t, p.URL("p")+"&part-size=5MiB")
	for name, fault := range map[string]func(){
		"a conflict without a reason": func() { p.StormNext(2, http.StatusConflict, "", testbucket.Abort) },
		"an error under status 200":   func() { p.StormNext(2, http.StatusOK, "InternalError", testbucket.Abort) },
		"no such page":                func() { p.StormNext(2, http.StatusNotFound, "", testbucket.Abort) },
	} {
		p.Heal()
		p.Storm(http.StatusBadRequest, "InvalidPart", testbucket.Complete)
		fault()
		if _, err := b.Put(t.Context(), "a", bytes.NewReader(numbered(11<<20)), storage.Condition{}); err == nil {
			t.Errorf("%s: stored", name)
		}
		if n := uploads(t, gateway); n != 0 {
			t.Errorf("%s: %d uploads left", name, n)
		}
	}
}

// Some services say nothing until they have put all parts together.
func TestEndOfAnUploadMayTakeLong(t *testing.T) {
	p := testbucket.NewProxy(t, testbucket.Gateway(t).Endpoint())
	b := open(t, p.URL("p")+"&part-size=5MiB&idle-timeout=500ms")
	p.Inject(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && !r.URL.Query().Has("uploads") {
				select {
				case <-r.Context().Done():
					return
				case <-time.After(time.Second):
				}
			}
			next.ServeHTTP(w, r)
		})
	})
	if _, err := b.Put(t.Context(), "a", bytes.NewReader(numbered(6<<20)), storage.Condition{Absent: true}); err != nil {
		t.Error(err)
	}
	if got := p.Requests("POST"); got != 2 {
		t.Errorf("%d requests to begin and end the upload, want 2", got)
	}
}

// Some services do not know an upload anymore once it is complete.
func TestEndOfAnUploadWhoseReplyIsLostIsUnclear(t *testing.T) {
	gateway := testbucket.Gateway(t)
	p := testbucket.NewProxy(t, gateway.Endpoint())
	b := open(t, p.URL("p")+"&part-size=5MiB")
	content := numbered(6 << 20)
	var asked atomic.Int32
	p.Inject(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case testbucket.KindOf(r) != testbucket.Complete:
				next.ServeHTTP(w, r)
			case asked.Add(1) == 1:
				next.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			default:
				status(http.StatusNotFound, "<Error><Code>NoSuchUpload</Code></Error>")(w, r)
			}
		})
	})
	_, err := b.Put(t.Context(), "a", bytes.NewReader(content), storage.Condition{Absent: true})
	if err == nil || errors.Is(err, storage.ErrPrecondition) || errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v: the object is this request's own", err)
	}
	if got, err := load(t, b, "a"); err != nil || got != string(content) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if n := uploads(t, gateway); n != 0 {
		t.Errorf("%d uploads left", n)
	}
}

func TestUploadThatIsGivenUpDoesNotHoldItsCaller(t *testing.T) {
	p := testbucket.NewProxy(t, testbucket.Gateway(t).Endpoint())
	b := openFor(t, p.URL("p")+"&part-size=5MiB", s3.Retry{For: time.Hour})
	p.Storm(503, "SlowDown", testbucket.Part, testbucket.Abort)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := b.Put(ctx, "a", bytes.NewReader(numbered(6<<20)), storage.Condition{})
	if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 10*time.Second {
		t.Errorf("got %v after %v", err, took)
	}
}

// only strikes requests with a method, but not the one that begins an upload.
func only(method string, strike http.HandlerFunc) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == method && !r.URL.Query().Has("uploads") {
				_, _ = io.Copy(io.Discard, r.Body)
				strike(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
