package rig

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/testbucket"
)

// Request is one request that passed a Meter and was answered.
type Request struct {
	Method, Path, Query string
	Bytes               int64 // of its body that passed
	Status              int
	Start, Done         time.Time // Done: the answer began to arrive
}

// Stored tells whether the request made an object, at one go or by completing
// a multipart upload.
func (r Request) Stored() bool {
	multipart := strings.Contains(r.Query, "uploadId")
	return r.Status == http.StatusOK &&
		(r.Method == http.MethodPut && !multipart || r.Method == http.MethodPost && multipart)
}

// Meter writes down what passes the way to an S3 server.
type Meter struct {
	proxy *testbucket.Proxy

	mu       sync.Mutex
	requests []Request
}

// NewMeter starts a meter in front of the endpoint target, until the test
// ends.
func NewMeter(t testing.TB, target string) *Meter {
	t.Helper()
	m := &Meter{proxy: testbucket.NewProxy(t, target)}
	m.proxy.Inject(m.metered)
	return m
}

// Endpoint returns the URL of the meter.
func (m *Meter) Endpoint() string { return m.proxy.Endpoint() }

func (m *Meter) metered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := Request{
			Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Start: time.Now(),
		}
		status, body := &statusWriter{ResponseWriter: w}, &countedBody{ReadCloser: r.Body}
		if r.ContentLength != 0 { // an empty body must stay known as such
			r.Body = body
		}
		next.ServeHTTP(status, r)
		req.Status, req.Done, req.Bytes = status.code, status.at, body.n.Load()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.requests = append(m.requests, req)
	})
}

type countedBody struct {
	io.ReadCloser
	n atomic.Int64
}

// Read counts what was read.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
}

type statusWriter struct {
	http.ResponseWriter
	code int
	at   time.Time
}

// WriteHeader notes the status and when it came.
func (w *statusWriter) WriteHeader(code int) {
	w.code, w.at = code, time.Now()
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap lets the proxy flush and reset.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Requests returns what has been answered so far, in order of the answers.
func (m *Meter) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Request(nil), m.requests...)
}

// Uploaded returns the bytes that were sent to be stored so far, refused and
// repeated ones too.
func (m *Meter) Uploaded() (n int64) {
	for _, r := range m.Requests() {
		if r.Method == http.MethodPut {
			n += r.Bytes
		}
	}
	return n
}
