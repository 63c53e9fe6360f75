package web_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/web"
)

// serve answers until the test ends and returns the base URL.
func serve(t *testing.T, v web.Views) string {
	t.Helper()
	l, err := web.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	group.Go(func() error { return web.Serve(ctx, l, web.Handler(v), slog.New(slog.DiscardHandler)) })
	t.Cleanup(func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return "http://" + l.Addr().String()
}

func ask(t *testing.T, method, url string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(text)
}

func views() web.Views {
	reg := prometheus.NewRegistry()
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "tidemark_test", Help: "x"})
	gauge.Set(7)
	reg.MustRegister(gauge)
	return web.Views{
		Problems: func() []web.Problem { return nil },
		Status:   func() any { return map[string]int{"pid": 1} },
		Metrics:  reg,
	}
}

func TestPagesAnswerReadersOnly(t *testing.T) {
	base := serve(t, views())
	for path, want := range map[string]string{
		"/": "/readyz", "/livez": "ok\n", "/readyz": "ok\n", "/status": `{"pid":1}`, "/metrics": "tidemark_test 7",
	} {
		if code, text := ask(t, "GET", base+path); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("GET %s: got %d, %q", path, code, text)
		}
		if code, text := ask(t, "HEAD", base+path); code != http.StatusOK || text != "" {
			t.Errorf("HEAD %s: got %d, %q", path, code, text)
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
			if code, _ := ask(t, method, base+path); code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: got %d", method, path, code)
			}
		}
	}
	if code, _ := ask(t, "GET", base+"/debug/pprof"); code != http.StatusNotFound {
		t.Errorf("unknown page: got %d", code)
	}
}

func TestReadinessFollowsTheProblems(t *testing.T) {
	v := views()
	var failing atomic.Bool
	v.Problems = func() []web.Problem {
		if !failing.Load() {
			return nil
		}
		return []web.Problem{
			{Name: "/a.db", Since: time.Unix(0, 0), Error: "upload: no route\nto host"},
			{Name: "/b.db", Error: "starting"},
		}
	}
	base := serve(t, v)
	for _, now := range []bool{false, true, false} {
		failing.Store(now)
		want, text := http.StatusOK, "ok\n"
		if now {
			want = http.StatusServiceUnavailable
			text = "/a.db since 1970-01-01T00:00:00Z: upload: no route; to host\n/b.db since start: starting\n"
		}
		if code, got := ask(t, "GET", base+"/readyz"); code != want || got != text {
			t.Errorf("failing %t: got %d, %q", now, code, got)
		}
		if code, _ := ask(t, "GET", base+"/livez"); code != http.StatusOK {
			t.Errorf("failing %t: /livez answered %d", now, code)
		}
	}
}

func TestAnswersOfManyProblemsAreBounded(t *testing.T) {
	v := views()
	v.Problems = func() []web.Problem { return make([]web.Problem, 10_000) }
	code, text := ask(t, "GET", serve(t, v)+"/readyz")
	if code != http.StatusServiceUnavailable || strings.Count(text, "\n") != 1001 || !strings.HasSuffix(text, "and 9000 more\n") {
		t.Errorf("got %d with %d lines", code, strings.Count(text, "\n"))
	}
}

func TestATakenAddressIsToldClearly(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addr := l.Addr().String()
	if _, err := web.Listen(t.Context(), addr); err == nil || !strings.Contains(err.Error(), "addr "+addr+": another process listens there") {
		t.Errorf("got %v", err)
	}
	if _, err := web.Listen(t.Context(), "192.0.2.1:1"); err == nil || !strings.Contains(err.Error(), "does not have that address") {
		t.Errorf("foreign address: got %v", err)
	}
}

func TestAddressesAreChecked(t *testing.T) {
	for addr, good := range map[string]bool{
		"": true, ":9090": true, "127.0.0.1:9090": true, "[::1]:9090": true, "localhost:1": true, "host-a.example:80": true, ":0": true,
		"9090": false, "localhost": false, ":http": false, ":65536": false, ":-1": false, "http://x:1": false, "a b:1": false, "::1:9": false,
		"unix:/x": false,
	} {
		if err := web.CheckAddr(addr); (err == nil) != good {
			t.Errorf("%q: got %v", addr, err)
		}
	}
}

func TestTheEndClosesOpenConnections(t *testing.T) {
	l, err := web.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	end := errors.New("end")
	ctx, cancel := context.WithCancelCause(t.Context())
	var group errgroup.Group
	group.Go(func() error { return web.Serve(ctx, l, web.Handler(views()), slog.New(slog.DiscardHandler)) })
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cancel(end)
	if err := group.Wait(); err != nil {
		t.Errorf("serve returned %v", err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}
