package testbucket

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

// Middleware wraps a handler to spoil, count or replace what passes.
type Middleware func(next http.Handler) http.Handler

// Proxy forwards HTTP to a target as it is, signatures stay valid. Faults
// added to it apply in order, the newest first, until Heal.
type Proxy struct {
	server *httptest.Server
	target http.Handler

	mu          sync.Mutex
	faults      []Middleware
	kept        []Middleware
	healed      chan struct{} // closed by the next Heal
	requests    map[string]int
	connections int
}

// NewProxy starts a proxy in front of the endpoint target, in good weather.
// The cleanup of the test stops it.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{target: forward(u), requests: map[string]int{}, healed: make(chan struct{})}
	p.server = httptest.NewUnstartedServer(p)
	p.server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.connections++
		}
	}
	p.server.Start()
	t.Cleanup(func() {
		p.Heal()
		p.server.CloseClientConnections() // ends handlers that hang
		p.server.Close()
	})
	return p
}

// forward keeps the Host header, which clients sign.
func forward(target *url.URL) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out.Host = r.In.Host
		},
		Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute},
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { reset(w) },
		ErrorLog:      quiet(),
	}
}

// ServeHTTP counts the request and passes it through the faults.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.requests[r.Method]++
	faults, kept := slices.Clone(p.faults), slices.Clone(p.kept)
	p.mu.Unlock()
	handler := p.target
	for _, fault := range faults {
		handler = fault(handler)
	}
	for _, check := range kept {
		handler = check(handler)
	}
	handler.ServeHTTP(w, r)
}

// Endpoint is the proxy's URL without bucket.
func (p *Proxy) Endpoint() string { return p.server.URL }

// URL is the replica URL of a prefix, by way of the proxy.
func (p *Proxy) URL(prefix string) string { return URL(p.server.URL, prefix) }

// Requests says how many requests with a method came, refused ones included;
// an empty method counts all.
func (p *Proxy) Requests(method string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if method != "" {
		return p.requests[method]
	}
	total := 0
	for _, n := range p.requests {
		total += n
	}
	return total
}

// Connections says how many connections clients opened.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.connections
}

// Inject adds a fault.
func (p *Proxy) Inject(fault Middleware) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, fault)
}

// Keep adds what sees every request before the faults do, and outlasts Heal.
func (p *Proxy) Keep(check Middleware) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = append(p.kept, check)
}

// Heal forgets all faults.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
	close(p.healed)
	p.healed = make(chan struct{})
}
