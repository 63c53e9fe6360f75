package s3_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/storage"
)

func TestOldProtocolIsEnough(t *testing.T) {
	s := &testbucket.Strict{}
	p := testbucket.NewProxy(t, testbucket.Gateway(t).Endpoint())
	p.Inject(s.Middleware)
	b := open(t, p.URL("p")+"&part-size=5MiB")
	for _, size := range []int{0, 1, 3 << 20, 11<<20 + 1} {
		key := fmt.Sprint("size-", size)
		for _, body := range []io.ReadSeeker{strings.NewReader(strings.Repeat("x", size)), onlySeeks{bytes.NewReader(make([]byte, size))}} {
			if _, err := b.Put(t.Context(), key, body, storage.Condition{}); err != nil {
				t.Errorf("put of %d bytes: %v", size, err)
			}
		}
		if got, err := load(t, b, key); err != nil || len(got) != size {
			t.Errorf("get of %d bytes: %d, %v", size, len(got), err)
		}
	}
	listed := 0
	for _, err := range b.List(t.Context(), "", "") {
		if err != nil {
			t.Errorf("list: %v", err)
		}
		listed++
	}
	if listed != 4 {
		t.Errorf("listed %d objects, want 4", listed)
	}
	if err := b.Delete(t.Context(), "size-0", "size-1", "size-3145728"); err != nil {
		t.Errorf("delete: %v", err)
	}
	for _, reason := range s.Refused() {
		t.Error(reason)
	}
}

// onlySeeks hides every method but Read and Seek.
type onlySeeks struct{ io.ReadSeeker }

func TestChecksumsOfTheServiceDecideNothing(t *testing.T) {
	b, p := faulty(t, "p")
	store(t, b, "a", "content")
	for name, value := range map[string]string{
		"X-Amz-Checksum-Crc32":  "AAAAAA==",
		"X-Amz-Checksum-Sha256": "d3Jvbmc=-3",
		"X-Amz-Checksum-Crc32c": "no base64",
	} {
		p.Heal()
		p.Inject(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set(name, value)
				w.Header().Set("X-Amz-Checksum-Type", "COMPOSITE")
				next.ServeHTTP(w, r)
			})
		})
		if got, err := load(t, b, "a"); got != "content" || err != nil {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestServiceWithoutRangesIsReadFromTheStart(t *testing.T) {
	b, p := faulty(t, "p")
	store(t, b, "a", "0123456789")
	p.Inject(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				w.Header().Set("ETag", `"x"`)
				_, _ = io.WriteString(w, "0123456789")
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	body, object, err := b.Get(t.Context(), "a", storage.Range{Offset: 3, Length: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); err != nil || string(got) != "3456" || object.Size != 10 {
		t.Errorf("got %q of %d, %v", got, object.Size, err)
	}
}

func TestBatchDeleteFallsBackToSingle(t *testing.T) {
	for _, status := range []int{http.StatusNotImplemented, http.StatusMethodNotAllowed} {
		b, p := faulty(t, "p")
		for _, key := range []string{"a", "b", "c", "d"} {
			store(t, b, key, "x")
		}
		p.Inject(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					w.WriteHeader(status)
					return
				}
				next.ServeHTTP(w, r)
			})
		})
		for _, keys := range [][]string{{"a", "b"}, {"c", "d", "none"}} {
			if err := b.Delete(t.Context(), keys...); err != nil {
				t.Errorf("%d: %v", status, err)
			}
		}
		if batches, singles := p.Requests("POST"), p.Requests("DELETE"); batches != 1 || singles != 5 {
			t.Errorf("%d: %d batches and %d single deletes, want 1 and 5", status, batches, singles)
		}
	}
}
