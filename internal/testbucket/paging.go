package testbucket

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
)

var (
	listed    = regexp.MustCompile(`(?s)<Contents>.*?</Contents>`)
	truncated = regexp.MustCompile(`<IsTruncated>(true|false)</IsTruncated>`)
)

// Paged answers listings in pages of n keys until Heal. The page that starts
// with key number broken of a listing (0: none) is not sent, but handed to
// instead. What is listed has to fit into one page of the server.
func (p *Proxy) Paged(n, broken int, instead http.HandlerFunc) {
	p.Inject(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if KindOf(r) != List {
				next.ServeHTTP(w, r)
				return
			}
			from, _ := strconv.Atoi(r.URL.Query().Get("continuation-token"))
			if broken > 0 && from >= broken {
				instead(w, r)
				return
			}
			reply := httptest.NewRecorder()
			next.ServeHTTP(reply, r)
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(reply.Code)
			_, _ = w.Write(cutPage(reply.Body.Bytes(), from, n))
		})
	})
}

// cutPage leaves keys from to from+n of a listing.
func cutPage(page []byte, from, n int) []byte {
	keys := listed.FindAll(page, -1)
	if len(keys) == 0 {
		return page
	}
	start := bytes.Index(page, keys[0])
	end := bytes.LastIndex(page, []byte("</Contents>")) + len("</Contents>")
	from = min(from, len(keys))
	to := min(from+n, len(keys))
	more := "<IsTruncated>false</IsTruncated>"
	if to < len(keys) {
		more = "<IsTruncated>true</IsTruncated><NextContinuationToken>" + strconv.Itoa(to) + "</NextContinuationToken>"
	}
	cut := append(bytes.Clone(page[:start]), bytes.Join(keys[from:to], nil)...)
	return truncated.ReplaceAll(append(cut, page[end:]...), []byte(more))
}
