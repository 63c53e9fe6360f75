package testbucket

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
)

// Storm answers requests with an S3 error until Heal. Without kinds it strikes
// all requests. A service that refuses late has read the body before.
func (p *Proxy) Storm(code int, name string, kinds ...Kind) {
	p.Inject(strike(refuse(code, name), kinds))
}

// StormNext is Storm for the next n requests of these kinds.
func (p *Proxy) StormNext(n, code int, name string, kinds ...Kind) {
	left := budget(n)
	p.Inject(func(next http.Handler) http.Handler {
		refused := refuse(code, name)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if struck(r, kinds) && left.take() {
				refused(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
}

// Flaky answers every nth request of these kinds with an S3 error, until Heal.
func (p *Proxy) Flaky(nth int64, code int, name string, kinds ...Kind) {
	var count atomic.Int64
	p.Inject(func(next http.Handler) http.Handler {
		refused := refuse(code, name)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if struck(r, kinds) && count.Add(1)%nth == 0 {
				refused(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
}

// Hang reads requests and never answers them, until Heal or until the client
// gives up; the server sees nothing of them.
func (p *Proxy) Hang(kinds ...Kind) {
	p.Inject(strike(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}, kinds))
}

// StallNext neither reads the bodies of the next n requests nor answers them,
// until Heal: the client of a long one can send no more.
func (p *Proxy) StallNext(n int, kinds ...Kind) {
	p.mu.Lock()
	healed := p.healed
	p.mu.Unlock()
	left := budget(n)
	p.Inject(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !struck(r, kinds) || !left.take() {
				next.ServeHTTP(w, r)
				return
			}
			<-healed
			panic(http.ErrAbortHandler)
		})
	})
}

// strike replaces the handling of requests of some kinds.
func strike(instead http.HandlerFunc, kinds []Kind) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if struck(r, kinds) {
				instead(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func struck(r *http.Request, kinds []Kind) bool {
	return len(kinds) == 0 || slices.Contains(kinds, KindOf(r))
}

// refuse answers like S3: a status, and an error in XML. No name: no body.
func refuse(code int, name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if name == "" || r.Method == http.MethodHead {
			w.WriteHeader(code)
			return
		}
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>said the proxy</Message></Error>", name)
	}
}
