package s3_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemark-io/tidemark/s3"
	"github.com/tidemark-io/tidemark/storage"
)

func create(b storage.Bucket, t *testing.T, key, content string) error {
	t.Helper()
	_, err := b.Put(t.Context(), key, strings.NewReader(content), storage.Condition{Absent: true})
	return err
}

func TestRefusalAfterALostReplyIsUnclear(t *testing.T) {
	b, p := faulty(t, "p")
	p.LoseReplies(1)
	err := create(b, t, "a", "content")
	if err == nil || errors.Is(err, storage.ErrPrecondition) {
		t.Errorf("got %v: the object is this request's own", err)
	}
	if err := create(b, t, "a", "content"); !errors.Is(err, storage.ErrPrecondition) {
		t.Errorf("second request: got %v, want a failed precondition", err)
	}
	if got, err := load(t, b, "a"); got != "content" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestRefusalAfterARefusedConnectionIsClear(t *testing.T) {
	b, p := faulty(t, "p")
	store(t, b, "a", "content")
	p.StatusNext(1, http.StatusConflict) // nothing stored, and no reason to try again
	if err := create(b, t, "a", "other"); err == nil || errors.Is(err, storage.ErrPrecondition) {
		t.Errorf("got %v", err)
	}
	p.Inject(answerNext(2, http.StatusConflict, "ConditionalRequestConflict"))
	if err := create(b, t, "a", "other"); !errors.Is(err, storage.ErrPrecondition) {
		t.Errorf("after conflicts: got %v, want a failed precondition", err)
	}
}

// answerNext answers the next n requests with an S3 error.
func answerNext(n, status int, code string) func(http.Handler) http.Handler {
	var answered atomic.Int32
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if int(answered.Add(1)) > n {
				next.ServeHTTP(w, r)
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>said the test</Message></Error>")
		})
	}
}

func TestLongBodyIsRefusedBeforeItIsSent(t *testing.T) {
	b, p := faulty(t, "p")
	long := strings.Repeat("x", 6<<20)
	if err := create(b, t, "a", long); err != nil {
		t.Fatal(err)
	}
	sent := p.Requests("PUT")
	if err := create(b, t, "a", long); !errors.Is(err, storage.ErrPrecondition) {
		t.Errorf("create: got %v", err)
	}
	for _, key := range []string{"a", "none"} {
		_, err := b.Put(t.Context(), key, strings.NewReader(long), storage.Condition{ETag: `"other"`})
		if !errors.Is(err, storage.ErrPrecondition) {
			t.Errorf("swap of %s: got %v", key, err)
		}
	}
	if got := p.Requests("PUT"); got != sent {
		t.Errorf("%d bodies were sent in vain", got-sent)
	}
}

func TestServiceThatIgnoresConditionsIsNotWrittenTo(t *testing.T) {
	environment(t)
	c, err := s3.ParseURL("s3://bucket/p?endpoint=https://storage.googleapis.com")
	if err != nil {
		t.Fatal(err)
	}
	b, err := s3.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := create(b, t, "a", "x"); err == nil || !strings.Contains(err.Error(), "ignores the conditions") {
		t.Errorf("got %v", err)
	}
}
