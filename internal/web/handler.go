package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	mostProblems = 1000             // lines of one answer
	parallel     = 4                // scrapes at a time; one beyond is answered with 503
	scrapeLimit  = 30 * time.Second // for one scrape
)

// Problem is why a part of the work is not done.
type Problem struct {
	Name  string    // what it is about
	Since time.Time // zero: unknown
	Error string
}

// String is the one line that a Problem gets.
func (p Problem) String() string {
	since := "start"
	if !p.Since.IsZero() {
		since = p.Since.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s since %s: %s", p.Name, since, oneLine(p.Error))
}

func oneLine(s string) string { return strings.Join(strings.FieldsFunc(s, isBreak), "; ") }

func isBreak(r rune) bool { return r == '\n' || r == '\r' }

// Views are what a Handler shows. The functions are called for each request, at
// the same time by several.
type Views struct {
	Problems func() []Problem // none: ready
	Status   func() any       // shown as JSON
	Metrics  prometheus.Gatherer
}

// Handler answers GET and HEAD of /livez, /readyz, /status and /metrics.
func Handler(v Views) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { v.ready(w) })
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { WriteJSON(w, v.Status()) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(v.Metrics, promhttp.HandlerOpts{
		MaxRequestsInFlight: parallel, Timeout: scrapeLimit, EnableOpenMetrics: true,
	}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		plain(w, http.StatusOK, "/livez\n/readyz\n/status\n/metrics\n")
	})
	return mux
}

func (v Views) ready(w http.ResponseWriter) {
	problems := v.Problems()
	if len(problems) == 0 {
		plain(w, http.StatusOK, "ok\n")
		return
	}
	var text strings.Builder
	for i, p := range problems {
		if i == mostProblems {
			fmt.Fprintf(&text, "and %d more\n", len(problems)-i)
			break
		}
		text.WriteString(p.String() + "\n")
	}
	plain(w, http.StatusServiceUnavailable, text.String())
}

// plain writes an answer that nobody may keep; a client that is gone does not
// read it.
func plain(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text))
}

// WriteJSON writes an answer as JSON.
func WriteJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // a client that is gone does not read it
}
