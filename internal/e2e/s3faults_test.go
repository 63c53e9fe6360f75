//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// weather is a place on S3 behind a proxy that spoils the way to it, and
// refuses what old services do not know.
type weather struct {
	rig.Place // by way of the proxy
	direct    rig.Place
	proxy     *testbucket.Proxy
	strict    *testbucket.Strict
}

// startWeather is calm at first. Connections are given up after a second of
// silence, and files sent in parts of 5 MiB.
func startWeather(t *testing.T) *weather {
	t.Helper()
	direct := rig.S3(t)
	w := &weather{direct: direct, proxy: testbucket.NewProxy(t, direct.Meter.Endpoint()), strict: &testbucket.Strict{}}
	w.proxy.Keep(w.strict.Middleware)
	w.Place = direct.Via(w.proxy.Endpoint())
	w.URL += "&part-size=5MiB&idle-timeout=1s"
	t.Cleanup(func() {
		for _, reason := range w.strict.Refused() {
			t.Error(reason)
		}
	})
	return w
}

// uploadFaults may come over a sidecar at any time, to every request or to the
// kinds they name.
func uploadFaults(p *testbucket.Proxy) map[string]func() {
	const all = 1 << 20
	return map[string]func(){
		"500":                      func() { p.Storm(500, "InternalError") },
		"503":                      func() { p.Storm(503, "SlowDown") },
		"429":                      func() { p.Storm(429, "TooManyRequests") },
		"408":                      func() { p.Storm(408, "") },
		"409":                      func() { p.Storm(409, "OperationAborted") },
		"409 without a reason":     func() { p.Storm(409, "") },
		"409 of a condition":       func() { p.Storm(409, "ConditionalRequestConflict", testbucket.Put, testbucket.Complete) },
		"412 of nothing stored":    func() { p.Storm(412, "PreconditionFailed", testbucket.Put, testbucket.Complete) },
		"404 of a key in creation": func() { p.Storm(404, "NoSuchKey", testbucket.Put, testbucket.Complete) },
		"errors under status 200":  func() { p.Storm(200, "InternalError") },
		"a page in between":        func() { p.Replace("<html>Please log in</html>", testbucket.Get, testbucket.List, testbucket.Complete) },
		"nothing under status 200": func() { p.Replace("", testbucket.Put, testbucket.Part, testbucket.Complete, testbucket.DeleteBatch) },
		"no replies":               func() { p.Hang() },
		"nothing read":             func() { p.StallNext(all) },
		"replies cut":              func() { p.Truncate(60) },
		"connections cut":          p.Stutter,
		"every second fails":       func() { p.Flaky(2, 500, "InternalError") },
		"replies lost":             func() { p.LoseReplies(all) },
	}
}

func TestWhateverTheServiceAnswersTheReplicaIsRight(t *testing.T) {
	t.Parallel()
	w := startWeather(t)
	l := startLoopAt(t, w.direct, 60)
	sidecar := stormyBase(t, w, l)
	before := resources(t, sidecar)
	faults := uploadFaults(w.proxy)
	for i, name := range slices.Sorted(maps.Keys(faults)) {
		t.Log(name)
		faults[name]()
		rig.Pause(t, time.Second)
		w.proxy.Heal()
		rig.Pause(t, 200*time.Millisecond)
		if i%5 == 0 {
			l.check(t)
		}
	}
	l.writer.Stop(t)
	if e := ask(t, l.path, "sync", "-wait"); e.Code != 0 {
		t.Errorf("sync exited with %d: %s", e.Code, e.Output)
	}
	restoresEqual(t, w.direct, l.path)
	settles(t, sidecar, before)
	lastCommitUnder429(t, w, l, sidecar)
	restoresEqual(t, w.direct, l.path)
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if left := leftParts(t, w.direct); len(left) > 0 {
			id := filepath.Base(filepath.Dir(left[0]))
			of := slices.DeleteFunc(w.direct.Meter.Requests(), func(r rig.Request) bool { return !strings.Contains(r.Query, id) })
			return fmt.Errorf("parts of uploads are left behind: %q; of the first: %+v", left, of)
		}
		return nil
	})
}

// stormyBase starts a sidecar, whose base goes through storms while its parts
// are sent and while they are put together.
func stormyBase(t *testing.T, w *weather, l *loop) *rig.Process {
	t.Helper()
	asked := func(method string, n int) {
		rig.Eventually(t, rig.Limit, func(context.Context) error {
			if got := w.proxy.Requests(method); got < n {
				return fmt.Errorf("%d requests with %s, want %d", got, method, n)
			}
			return nil
		})
	}
	w.proxy.Storm(503, "SlowDown", testbucket.Part)
	sidecar := sidecarWith(t, l.path, w.Place, secondsOnly+"addr: 127.0.0.1:0\nshutdown-timeout: 60s\n")
	asked(http.MethodPut, 4)
	rig.Pause(t, 2*time.Second)
	w.proxy.Heal()
	w.proxy.Storm(500, "InternalError", testbucket.Complete)
	asked(http.MethodPost, 3)
	rig.Pause(t, time.Second)
	if len(leftParts(t, w.direct)) == 0 {
		t.Error("the parts of an upload under way are not seen")
	}
	w.proxy.Heal()
	awaitFile(t, w.direct)
	begun := 0
	for _, r := range w.direct.Meter.Requests() {
		if r.Method == http.MethodPost && strings.HasPrefix(r.Query, "uploads") {
			begun++
		}
	}
	if begun != 1 {
		t.Errorf("the upload of the base was begun %d times over two storms, want once", begun)
	}
	return sidecar
}

// lastCommitUnder429 stops a sidecar while the bucket refuses for 5 s.
func lastCommitUnder429(t *testing.T, w *weather, l *loop, sidecar *rig.Process) {
	t.Helper()
	w.proxy.Storm(429, "TooManyRequests")
	commit(t, testdb.Open(t, l.path), 5)
	sidecar.Signal(t, syscall.SIGTERM)
	rig.Pause(t, 5*time.Second)
	if !sidecar.Alive() {
		t.Error("the sidecar gave up before its shutdown timeout")
	}
	w.proxy.Heal()
	if e := sidecar.Wait(t, rig.Limit); e.Code != 0 {
		t.Errorf("exit code %d, want 0: the bucket took the last commit", e.Code)
	}
}

// usage is what a sidecar holds.
type usage struct{ goroutines, descriptors float64 }

func resources(t *testing.T, sidecar *rig.Process) usage {
	t.Helper()
	_, text := page(t, baseURL(t, sidecar)+"/metrics")
	read := func(name string) float64 {
		m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no metric %s", name)
		}
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return usage{read("go_goroutines"), read("process_open_fds")}
}

// settles waits until a sidecar holds about what it did before.
func settles(t *testing.T, sidecar *rig.Process, before usage) {
	t.Helper()
	const slack = 6
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		now := resources(t, sidecar)
		if now.goroutines > before.goroutines+slack || now.descriptors > before.descriptors+slack {
			return fmt.Errorf("holds %+v, before the faults %+v", now, before)
		}
		return nil
	})
}

// leftParts returns the parts of multipart uploads that were neither completed
// nor aborted. A part whose sender gave up waiting may be stored after the end of
// its upload: versitygw makes the directory anew. Those do not count.
func leftParts(t *testing.T, p rig.Place) (left []string) {
	t.Helper()
	ended := map[string]bool{}
	for _, r := range p.Meter.Requests() {
		q, err := url.ParseQuery(r.Query)
		if err == nil && (r.Method == http.MethodDelete || r.Method == http.MethodPost) && r.Status < 300 {
			ended[q.Get("uploadId")] = true
		}
	}
	root := filepath.Join(p.Server.Root(), ".sgwtmp", "multipart")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() && !ended[filepath.Base(filepath.Dir(path))] {
			left = append(left, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}
