//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
)

// crowd lays 1200 objects that are none of ours before the files of a replica,
// so that a listing shows the first file on its second page.
func crowd(t *testing.T, p rig.Place) {
	t.Helper()
	for i := range 1200 {
		name := filepath.Join(p.Dir, "0000", fmt.Sprintf("000-%04d", i))
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// secondPage strikes the listings that go on.
func secondPage(proxy *testbucket.Proxy, instead http.HandlerFunc) {
	proxy.Inject(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("continuation-token") {
				instead(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
}

// A sidecar that took what it cannot list for an empty replica would begin
// another one over it, or let an application start on an empty database.
func TestStartDoesNotBelieveInAnEmptyReplica(t *testing.T) {
	t.Parallel()
	p, path := replicaOfSome(t)
	crowd(t, p)
	before := names(p.Files(t))
	proxy := testbucket.NewProxy(t, p.Server.Endpoint())
	via := p.Via(proxy.Endpoint())
	secondPage(proxy, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })

	missing, started := filepath.Join(t.TempDir(), "missing.db"), filepath.Join(t.TempDir(), "started")
	restoring := rig.Replicate(t, missing, via, "-exec", "touch "+started)
	remove(t, stateDir(path)) // with it goes what was known of the replica
	sidecar := rig.Replicate(t, path, via)
	restore := rig.Tidemark(t, via.Env, "restore", "-if-replica-exists", "-o", filepath.Join(t.TempDir(), "r.db"), via.URL)

	awaitLine(t, restoring, "HTTP 500")
	awaitLine(t, sidecar, "HTTP 500")
	rig.Pause(t, time.Second)
	for _, file := range []string{missing, started} {
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is there: %v", file, err)
		}
	}
	restoring.Kill(t)
	if e := restore.Wait(t, rig.Limit); e.Code != 1 {
		t.Errorf("restore exited with %d, want 1", e.Code)
	}
	if now := names(p.Files(t)); !slices.Equal(now, before) {
		t.Errorf("the replica holds %q, before %q", now, before)
	}
	proxy.Heal()
	stop(t, sidecar)
	restoresEqual(t, via, path)
	if n := len(p.Level(t, 9)); n != 1 {
		t.Errorf("%d full copies, want the first alone", n)
	}
}

func names(files []rig.File) (out []string) {
	for _, f := range files {
		out = append(out, fmt.Sprint(f.Level, "/", f.Name()))
	}
	return out
}

// awaitLine waits until a sidecar has said something.
func awaitLine(t *testing.T, sidecar *rig.Process, text string) {
	t.Helper()
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if !strings.Contains(sidecar.Output(), text) {
			return fmt.Errorf("the sidecar has not said %q: %s", text, sidecar.Output())
		}
		return nil
	})
}
