package testbucket

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
)

// Truncate ends the bodies of replies after n bytes in good order, with the
// length of the whole announced, until Heal.
func (p *Proxy) Truncate(n int, kinds ...Kind) {
	p.rewrite(kinds, func(w http.ResponseWriter, reply *httptest.ResponseRecorder) {
		copyHeader(w.Header(), reply.Header())
		w.Header().Set("Content-Length", strconv.Itoa(reply.Body.Len()))
		w.WriteHeader(reply.Code)
		_, _ = w.Write(reply.Body.Bytes()[:min(n, reply.Body.Len())])
		if reply.Body.Len() > n {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	})
}

// Shorten passes on at most n bytes of replies as if there were no more, until
// Heal: a service that answers ranges in pieces.
func (p *Proxy) Shorten(n int, kinds ...Kind) {
	p.rewrite(kinds, func(w http.ResponseWriter, reply *httptest.ResponseRecorder) {
		body := reply.Body.Bytes()[:min(n, reply.Body.Len())]
		copyHeader(w.Header(), reply.Header())
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(reply.Code)
		_, _ = w.Write(body)
	})
}

// Replace answers with a text under status 200 in place of the reply to what
// the server has carried out, until Heal.
func (p *Proxy) Replace(text string, kinds ...Kind) {
	p.rewrite(kinds, func(w http.ResponseWriter, _ *httptest.ResponseRecorder) {
		w.Header().Set("Content-Type", "application/xml")
		_, _ = io.WriteString(w, text)
	})
}

// rewrite hands whole replies to a function that answers in their place.
// Errors of the server pass.
func (p *Proxy) rewrite(kinds []Kind, answer func(http.ResponseWriter, *httptest.ResponseRecorder)) {
	p.Inject(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !struck(r, kinds) {
				next.ServeHTTP(w, r)
				return
			}
			reply := httptest.NewRecorder()
			next.ServeHTTP(reply, r)
			if reply.Code >= http.StatusMultipleChoices {
				copyHeader(w.Header(), reply.Header())
				w.WriteHeader(reply.Code)
				_, _ = w.Write(reply.Body.Bytes())
				return
			}
			answer(w, reply)
		})
	})
}

// CutIdle ends every connection, those that wait for the next request above
// all.
func (p *Proxy) CutIdle() { p.server.CloseClientConnections() }

// Stutter closes the connection behind every reply without having announced
// it, until Heal: the client thinks it can be used again.
func (p *Proxy) Stutter() {
	p.rewrite(nil, func(w http.ResponseWriter, reply *httptest.ResponseRecorder) {
		conn, out, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer conn.Close()
		whole := reply.Result()
		whole.ContentLength = int64(reply.Body.Len())
		whole.Proto, whole.ProtoMajor, whole.ProtoMinor = "HTTP/1.1", 1, 1
		_ = whole.Write(out)
		_ = out.Flush()
	})
}
