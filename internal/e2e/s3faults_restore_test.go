//go:build e2e

package e2e_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// replicaOfSome makes a replica of a base in parts and some dozen files, of a
// database that nobody writes to anymore.
func replicaOfSome(t *testing.T) (rig.Place, string) {
	t.Helper()
	p := rig.S3(t)
	path, db := live(t, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE ballast (b)", `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 8)
		INSERT INTO ballast SELECT randomblob(1<<20) FROM n`)
	sidecar := sidecarWith(t, path, p, "levels: []\nsnapshot: {interval: 1h}\n")
	awaitFile(t, p)
	for range 24 {
		commit(t, db, 1)
		if e := ask(t, path, "sync", "-wait"); e.Code != 0 {
			t.Fatalf("sync exited with %d: %s", e.Code, e.Output)
		}
	}
	stop(t, sidecar)
	if n := len(p.Files(t)); n < 20 {
		t.Fatalf("%d files", n)
	}
	return p, path
}

// under is the place behind a proxy of its own.
func under(t *testing.T, p rig.Place) (rig.Place, *testbucket.Proxy) {
	t.Helper()
	proxy := testbucket.NewProxy(t, p.Server.Endpoint())
	p = p.Via(proxy.Endpoint())
	p.URL += "&idle-timeout=1s"
	return p, proxy
}

// storms let nothing through that a restore needs.
func storms() map[string]func(*testbucket.Proxy) {
	storm := func(code int, name string, kinds ...testbucket.Kind) func(*testbucket.Proxy) {
		return func(p *testbucket.Proxy) { p.Storm(code, name, kinds...) }
	}
	return map[string]func(*testbucket.Proxy){
		"500 on listings":   storm(500, "InternalError", testbucket.List),
		"500 on reads":      storm(500, "InternalError", testbucket.Get),
		"503 on everything": storm(503, "SlowDown"),
		"429 on reads":      storm(429, "TooManyRequests", testbucket.Get),
		"408 on everything": storm(408, ""),
		"409 on everything": storm(409, "OperationAborted"),
		"error under 200":   storm(200, "InternalError"),
		"expired token":     storm(400, "ExpiredToken", testbucket.List),
		"silence":           func(p *testbucket.Proxy) { p.Hang() },
	}
}

// sparing faults last, but let something through each time.
func sparing() map[string]func(*testbucket.Proxy) {
	return map[string]func(*testbucket.Proxy){
		"silent bodies":     func(p *testbucket.Proxy) { p.StallBodies(700_000) },
		"cut bodies":        func(p *testbucket.Proxy) { p.CutBodies(100_000) },
		"truncated bodies":  func(p *testbucket.Proxy) { p.Truncate(100_000, testbucket.Get) },
		"short bodies":      func(p *testbucket.Proxy) { p.Shorten(100_000, testbucket.Get) },
		"every third fails": func(p *testbucket.Proxy) { p.Flaky(3, 503, "SlowDown", testbucket.Get) },
		"connections cut":   func(p *testbucket.Proxy) { p.Stutter() },
		"listing in pages":  func(p *testbucket.Proxy) { p.Paged(4, 0, nil) },
	}
}

// attempt is a restore under a fault.
type attempt struct {
	name    string
	proxy   *testbucket.Proxy
	out     string
	restore *rig.Process
}

// attempts starts restores under all faults of a table together: they mostly
// wait.
func attempts(t *testing.T, p rig.Place, faults map[string]func(*testbucket.Proxy)) (out []attempt) {
	t.Helper()
	for name, fault := range faults {
		via, proxy := under(t, p)
		fault(proxy)
		a := attempt{name: name, proxy: proxy, out: filepath.Join(t.TempDir(), "restored.db")}
		// With this flag, certainty that there is no backup is a success.
		a.restore = rig.Tidemark(t, p.Env, "restore", "-if-replica-exists", "-o", a.out, via.URL)
		out = append(out, a)
	}
	return out
}

func TestRestoresThroughFaultsAreRightOrFail(t *testing.T) {
	t.Parallel()
	p, path := replicaOfSome(t)
	doomed, steady, stormy := attempts(t, p, lasting()), attempts(t, p, sparing()), attempts(t, p, storms())
	rig.Pause(t, 5*time.Second)
	for _, a := range stormy {
		if !a.restore.Alive() {
			t.Errorf("%s: the restore ended during the storm", a.name)
		}
		a.proxy.Heal()
	}
	for _, a := range append(steady, stormy...) {
		if e := a.restore.Wait(t, rig.Limit); e.Code != 0 {
			t.Errorf("%s: restore exited with %d: %s", a.name, e.Code, e.Output)
			continue
		}
		testdb.SameDatabase(t, a.out, path)
	}
	for _, a := range doomed {
		a.failed(t)
	}
	restoresEqual(t, p, path)
}

// failed checks that a restore neither succeeded nor claims to know that there
// is nothing to restore.
func (a attempt) failed(t *testing.T) {
	t.Helper()
	if e := a.restore.Wait(t, rig.Limit); e.Code != 1 {
		t.Errorf("%s: restore exited with %d, want 1: %s", a.name, e.Code, e.Output)
	}
	if left, err := os.ReadDir(filepath.Dir(a.out)); err != nil || len(left) > 0 {
		t.Errorf("%s: restore left %v, %v", a.name, left, err)
	}
	if n := a.proxy.Requests(""); n > 1000 {
		t.Errorf("%s: %d requests", a.name, n)
	}
}

// lasting faults leave a restore without a way.
func lasting() map[string]func(*testbucket.Proxy) {
	page := func(instead http.HandlerFunc) func(*testbucket.Proxy) {
		return func(p *testbucket.Proxy) { p.Paged(10, 10, instead) }
	}
	text := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	return map[string]func(*testbucket.Proxy){
		"second page 500":       page(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }),
		"second page denied":    page(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }),
		"second page not found": page(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }),
		"second page malformed": page(text("<ListBucketResult><Name>tidemark</Name><Contents><Key>lake")),
		"second page empty":     page(text("")),
		"second page HTML":      page(text("<html><body>Please log in</body></html>")),
		"second page an error":  page(text("<Error><Code>InternalError</Code></Error>")),
		"listing denied":        func(p *testbucket.Proxy) { p.Storm(403, "AccessDenied", testbucket.List) },
		"listing truncated":     func(p *testbucket.Proxy) { p.Truncate(500, testbucket.List) },
		"listing not found":     func(p *testbucket.Proxy) { p.Storm(404, "NoSuchKey", testbucket.List) },
		"listing fails":         func(p *testbucket.Proxy) { p.Storm(500, "InternalError", testbucket.List) },
		"listing replaced":      func(p *testbucket.Proxy) { p.Replace("<html/>", testbucket.List) },
		"one byte a connection": func(p *testbucket.Proxy) { p.CutBodies(1) },
	}
}
