package testbucket

import (
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Strict is a server that knows the old protocol only: it refuses checksums,
// trailers and bodies without an exact length, and keeps what it refused.
type Strict struct {
	mu      sync.Mutex
	refused []string
}

// Middleware is the fault to inject.
func (s *Strict) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reason := unknown(r); reason != "" {
			s.mu.Lock()
			s.refused = append(s.refused, r.Method+" "+r.URL.String()+": "+reason)
			s.mu.Unlock()
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Refused returns the requests that were refused, and why.
func (s *Strict) Refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

func unknown(r *http.Request) string {
	for name, values := range r.Header {
		name = strings.ToLower(name)
		value := strings.ToLower(values[0])
		switch {
		case name == "x-amz-trailer", name == "te", strings.HasPrefix(name, "x-amz-checksum-"), name == "x-amz-sdk-checksum-algorithm":
			return name
		case strings.Contains(value, "aws-chunked"), strings.HasPrefix(value, "streaming-"):
			return name + ": " + value
		}
	}
	if len(r.TransferEncoding) > 0 {
		return "no exact length"
	}
	return ""
}
