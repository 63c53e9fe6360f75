package testbucket

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"
)

// Drop resets the connection of every request until Heal.
func (p *Proxy) Drop() { p.Inject(always(dropped)) }

// DropNext resets the connections of the next n requests.
func (p *Proxy) DropNext(n int) { p.Inject(times(n, dropped)) }

// Status answers every request with an HTTP status until Heal.
func (p *Proxy) Status(code int) { p.Inject(always(answer(code))) }

// StatusNext answers the next n requests with an HTTP status.
func (p *Proxy) StatusNext(n, code int) { p.Inject(times(n, answer(code))) }

// Lag holds every request back for a while until Heal.
func (p *Proxy) Lag(d time.Duration) {
	p.Inject(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-time.After(d):
				next.ServeHTTP(w, r)
			}
		})
	})
}

// LoseReplies lets the server carry out the next n requests that change
// something, or of these kinds, then resets the connection instead of passing
// the reply on.
func (p *Proxy) LoseReplies(n int, kinds ...Kind) {
	left := budget(n)
	p.Inject(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			reads := r.Method == http.MethodGet || r.Method == http.MethodHead
			if reads || !struck(r, kinds) || !left.take() {
				next.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(httptest.NewRecorder(), r)
			reset(w)
		})
	})
}

// CutBodies ends the body of every GET after n bytes by a reset, until Heal.
func (p *Proxy) CutBodies(n int64) {
	p.limitBodies(n, func(w http.ResponseWriter, _ *http.Request) { reset(w) })
}

// StallBodies stops the body of every GET after n bytes and keeps the
// connection open, until Heal.
func (p *Proxy) StallBodies(n int64) {
	p.limitBodies(n, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
}

func (p *Proxy) limitBodies(n int64, end http.HandlerFunc) {
	p.Inject(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				next.ServeHTTP(w, r)
				return
			}
			reply := httptest.NewRecorder()
			next.ServeHTTP(reply, r)
			copyHeader(w.Header(), reply.Header())
			w.WriteHeader(reply.Code)
			whole := int64(reply.Body.Len())
			_, _ = io.CopyN(w, reply.Body, min(n, whole))
			if whole > n {
				_ = http.NewResponseController(w).Flush()
				end(w, r)
			}
		})
	})
}

func copyHeader(to, from http.Header) {
	for name, values := range from {
		to[name] = values
	}
}

// always strikes every request.
func always(strike http.HandlerFunc) Middleware {
	return func(http.Handler) http.Handler { return strike }
}

// times strikes the next n requests.
func times(n int, strike http.HandlerFunc) Middleware {
	left := budget(n)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if left.take() {
				strike(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func dropped(w http.ResponseWriter, _ *http.Request) { reset(w) }

// answer reads the request's body first, as a server that refuses late does.
func answer(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(code)
	}
}

// reset closes a connection so that the client sees "connection reset".
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // how net/http cuts a reply under way
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}

// budget counts down over concurrent requests.
func budget(n int) *counter {
	c := &counter{}
	c.left.Store(int64(n))
	return c
}

type counter struct{ left atomic.Int64 }

func (c *counter) take() bool { return c.left.Add(-1) >= 0 }

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
