package s3_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/storage"
)

const listing = `<?xml version="1.0"?><ListBucketResult><Name>tidemark</Name>%s</ListBucketResult>`

func contents(key string) string {
	return "<Contents><Key>" + key + "</Key><Size>1</Size></Contents>"
}

// pages answers the first request with one page, and every other with next.
func pages(t *testing.T, next http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("continuation-token") == "" {
			_, _ = fmt.Fprintf(w, listing, "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"+contents("p/1"))
			return
		}
		next(w, r)
	}))
	t.Cleanup(server.Close)
	return testbucket.URL(server.URL, "p")
}

func write(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func status(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}
}

func TestBrokenPageIsNeverTheEndOfAList(t *testing.T) {
	for name, next := range map[string]http.HandlerFunc{
		"500":            status(500, ""),
		"403":            status(403, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>"),
		"404":            status(404, "<Error><Code>NoSuchKey</Code></Error>"),
		"no bucket":      status(404, "<Error><Code>NoSuchBucket</Code></Error>"),
		"malformed":      write(`<?xml version="1.0"?><ListBucketResult><Contents><Key>p/2`),
		"not XML":        write("service unavailable"),
		"empty":          write(""),
		"HTML":           write("<html><body>Please log in</body></html>"),
		"an error":       write("<Error><Code>InternalError</Code></Error>"),
		"without end":    write(fmt.Sprintf(listing, contents("p/2"))),
		"no next token":  write(fmt.Sprintf(listing, "<IsTruncated>true</IsTruncated>"+contents("p/2"))),
		"same token":     write(fmt.Sprintf(listing, "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"+contents("p/2"))),
		"backwards":      write(fmt.Sprintf(listing, "<IsTruncated>false</IsTruncated>"+contents("p/0"))),
		"foreign prefix": write(fmt.Sprintf(listing, "<IsTruncated>false</IsTruncated>"+contents("q/2"))),
	} {
		b := open(t, pages(t, next))
		var last error
		listed := 0
		for _, err := range b.List(t.Context(), "", "") {
			if last = err; err == nil {
				listed++
			}
		}
		if last == nil || errors.Is(last, storage.ErrNotFound) || !strings.Contains(last.Error(), "list s3://tidemark/p/") {
			t.Errorf("%s: %d objects, then %v", name, listed, last)
		}
	}
}

func TestFolderMarksAreNotListed(t *testing.T) {
	b := open(t, pages(t, write(fmt.Sprintf(listing, "<IsTruncated>false</IsTruncated>"+contents("p/2/")+contents("p/3")))))
	var got []string
	for object, err := range b.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, object.Key)
	}
	if strings.Join(got, " ") != "1 3" {
		t.Errorf("listed %q", got)
	}
}

func TestListAsksForNoPageNobodyWants(t *testing.T) {
	b := open(t, pages(t, func(http.ResponseWriter, *http.Request) { t.Error("asked for the second page") }))
	for _, err := range b.List(t.Context(), "", "") {
		if err != nil {
			t.Error(err)
		}
		break
	}
}
