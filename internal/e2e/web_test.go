//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// baseURL waits until a sidecar says where it answers HTTP.
func baseURL(t *testing.T, sidecar *rig.Process) (base string) {
	t.Helper()
	said := regexp.MustCompile(`HTTP is answered.* addr=([0-9.:]+)`)
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		match := said.FindStringSubmatch(sidecar.Output())
		if match == nil {
			return errors.New("the sidecar has not said where it answers")
		}
		base = "http://" + match[1]
		return nil
	})
	return base
}

func page(t *testing.T, url string) (code int, text string) {
	t.Helper()
	reply, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	all, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(all)
}

// awaitReady waits for a code of /readyz and returns its text.
func awaitReady(t *testing.T, base string, want int) (text string) {
	t.Helper()
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		var code int
		if code, text = page(t, base+"/readyz"); code != want {
			return fmt.Errorf("/readyz answers %d, want %d: %s", code, want, text)
		}
		return nil
	})
	return text
}

func TestHealthOverHTTPFollowsTheReplica(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	other := rig.Directory(t)
	path, db := live(t, testdb.Options{})
	second, otherDB := live(t, testdb.Options{})
	conf := config(t, "addr: 127.0.0.1:0\ndbs:\n  - path: %s\n    replica: {url: %q}\n  - path: %s\n    replica: {url: %q}\n",
		path, p.URL, second, other.URL)
	sidecar := rig.Tidemark(t, p.Env, "replicate", "-config", conf)
	base := baseURL(t, sidecar)
	for range 3 {
		awaitReady(t, base, http.StatusOK)
		p.Server.Stop()
		commit(t, db, 1)
		text := awaitReady(t, base, http.StatusServiceUnavailable)
		if strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, path+" since 20") {
			t.Errorf("/readyz says %q, want one line about %s", text, path)
		}
		if code, _ := page(t, base+"/livez"); code != http.StatusOK {
			t.Errorf("/livez answers %d", code)
		}
		if _, text := page(t, base+"/metrics"); !strings.Contains(text, "\ntidemark_ready 0\n") {
			t.Errorf("the metrics do not say that it is not ready:\n%s", text)
		}
		p.Server.Start()
	}
	awaitReady(t, base, http.StatusOK)
	commit(t, otherDB, 3)
	stop(t, sidecar)
	restoresEqual(t, p, path)
	restoresEqual(t, other, second)
}

func TestPagesShowMuchAndNoSecrets(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	path, db := live(t, testdb.Options{})
	rig.ReplicateOnce(t, path, p)
	commit(t, db, 5) // which nobody saw, so that the start compares
	sidecar := sidecarWith(t, path, p, "addr: 127.0.0.1:0")
	base := baseURL(t, sidecar)
	commit(t, db, 20)
	awaitReady(t, base, http.StatusOK)
	if e := ask(t, path, "sync", "-wait"); e.Code != 0 {
		t.Errorf("sync exited with %d: %s", e.Code, e.Output)
	}
	pages := ""
	for _, name := range []string{"/", "/livez", "/readyz", "/status", "/metrics"} {
		code, text := page(t, base+name)
		if code != http.StatusOK {
			t.Errorf("%s answers %d", name, code)
		}
		pages += text
	}
	for _, want := range []string{
		`"state":"replicating"`, `"resyncs":1`, `tidemark_build_info{`, `tidemark_ready 1`,
		`tidemark_capture_commits_total{db="` + path, `tidemark_capture_resyncs_total{db="` + path + `"} 1`,
		`tidemark_bucket_request_seconds_count{operation="put"}`, `tidemark_bucket_bytes_total{operation="put"}`,
		`tidemark_databases{state="replicating"} 1`, `tidemark_upload_lag_seconds{db="` + path, `tidemark_spool_bytes{db="`,
	} {
		if !strings.Contains(pages, want) {
			t.Errorf("nothing says %s in\n%s", want, pages)
		}
	}
	if strings.Contains(pages, testbucket.SecretKey) {
		t.Error("a page shows the secret key")
	}
	stop(t, sidecar)
	restoresEqual(t, p, path)
}

func TestATakenAddressFailsTheStart(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, db := live(t, testdb.Options{})
	first := rig.Tidemark(t, nil, "replicate", "-config",
		config(t, "addr: 127.0.0.1:0\ndbs: [{path: %s, replica: {url: %q}}]\n", path, p.URL))
	addr := strings.TrimPrefix(baseURL(t, first), "http://")
	second := rig.Tidemark(t, nil, "replicate", "-config",
		config(t, "addr: %s\ndbs: [{path: %s.other, replica: {url: %q}}]\n", addr, path, rig.Directory(t).URL))
	e := second.Wait(t, rig.Limit)
	if e.Code != 1 || !strings.Contains(e.Output, "addr "+addr+": another process listens there") {
		t.Errorf("the second sidecar exited with %d and said %q", e.Code, e.Output)
	}
	commit(t, db, 3)
	stop(t, first)
	restoresEqual(t, p, path)
	if _, err := http.Get("http://" + addr + "/livez"); err == nil {
		t.Error("something still answers")
	}
}
