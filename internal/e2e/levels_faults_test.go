//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestAHoleIsLeftBehindByASnapshot(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		const settings = "levels: [{interval: 8s}, {interval: 20s}]\nsnapshot: {interval: 24h}\nl0-retention: 1h\n"
		path, db := live(t, testdb.Options{})
		sidecar := sidecarWith(t, path, p, settings)
		awaitFile(t, p)
		var hole rig.File
		rig.Eventually(t, rig.Limit, func(context.Context) error {
			commit(t, db, 1)
			if e := ask(t, path, "sync", "-wait"); e.Code != 0 {
				return fmt.Errorf("sync: %s", e.Output)
			}
			raw := p.Level(t, 0)
			if merged := p.Level(t, 1); len(merged) > 0 {
				raw = slices.DeleteFunc(raw, func(f rig.File) bool { return f.Min <= merged[len(merged)-1].Max })
			}
			if len(raw) < 5 {
				return fmt.Errorf("%d files wait to be merged", len(raw))
			}
			hole = raw[len(raw)/2]
			return nil
		})
		sidecar.Kill(t) // and what it has copies of goes with it
		remove(t, hole.Path())
		sidecar = sidecarWith(t, path, p, settings)
		rig.Eventually(t, rig.Limit, func(context.Context) error {
			commit(t, db, 1)
			rig.Pause(t, 200*time.Millisecond)
			for _, f := range p.Level(t, 9) {
				if f.Max > hole.Max {
					return nil
				}
			}
			return fmt.Errorf("no snapshot reaches over %d", hole.Max)
		})
		for _, f := range p.Files(t) {
			if f.Min > 1 && f.Min <= hole.Min && f.Max >= hole.Max {
				t.Errorf("level %d has %s, which claims to hold the hole %d", f.Level, f.Name(), hole.Min)
			}
		}
		if n := strings.Count(sidecar.Output(), "level=WARN"); n != 1 {
			t.Errorf("%d warnings, want one for the hole:\n%s", n, sidecar.Output())
		}
		sidecar.Kill(t)
		sidecar = sidecarWith(t, path, p, settings)
		commit(t, db, 5)
		rig.Eventually(t, rig.Limit, func(context.Context) error {
			if merged := p.Level(t, 1); len(merged) == 0 || merged[len(merged)-1].Min <= hole.Max {
				return fmt.Errorf("level 1 does not go on behind the hole at %d", hole.Min)
			}
			return nil
		})
		stop(t, sidecar)
		restoresEqual(t, p, path)
		testdb.SameDatabase(t, rig.LitestreamRestore(t, p), path)
	})
}

// deletes tells whether a request deletes files.
func deletes(r *http.Request) bool {
	return r.Method == http.MethodDelete || r.Method == http.MethodPost && r.URL.Query().Has("delete")
}

func TestWithoutThePermissionToDeleteThatIsSaidOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings string
		failures int
	}{
		"retention": {"", 1},
		"external":  {"retention: external\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := rig.S3(t)
			proxy := testbucket.NewProxy(t, p.Meter.Endpoint())
			proxy.Inject(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if deletes(r) {
						http.Error(w, "<Error><Code>AccessDenied</Code></Error>", http.StatusForbidden)
						return
					}
					next.ServeHTTP(w, r)
				})
			})
			path, db := live(t, testdb.Options{})
			sidecar := sidecarWith(t, path, p.Via(proxy.Endpoint()), c.settings+
				"levels: [{interval: 1s}]\nsnapshot: {interval: 5s, retention: 3s}\nl0-retention: 1s\n")
			load := modest(400)
			load.Rate = 20
			testdb.StartWriter(t, path, load).Wait(t)
			const failure = "delete expired files"
			rig.Eventually(t, rig.Limit, func(context.Context) error {
				if n := strings.Count(sidecar.Output(), failure); n < c.failures {
					return fmt.Errorf("%d lines about what cannot be deleted", n)
				}
				return levels(t, p, 0, 1, 9)
			})
			commit(t, db, 1)
			rig.Pause(t, 8*time.Second)
			if n := strings.Count(sidecar.Output(), failure); n != c.failures {
				t.Errorf("%d lines about what cannot be deleted, want %d:\n%s", n, c.failures, sidecar.Output())
			}
			if n := proxy.Requests(http.MethodDelete); n > 0 && c.failures == 0 {
				t.Errorf("%d requests to delete", n)
			}
			if e := ask(t, path, "status"); !strings.Contains(e.Output, "replicating") ||
				strings.Contains(e.Output, "compaction: ") != (c.failures > 0) {
				t.Errorf("status says %s", e.Output)
			}
			stop(t, sidecar)
			restoresEqual(t, p, path)
		})
	}
}

func TestSyncsReturnAtTheirDeadlineWhateverTheBucketDoes(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	proxy := testbucket.NewProxy(t, p.Meter.Endpoint())
	l := startLoopAt(t, p, 100)
	sidecar := sidecarWith(t, l.path, p.Via(proxy.Endpoint()), secondsOnly)
	awaitFile(t, p)
	proxy.Lag(4 * time.Second) // each request, those of the snapshot too
	var group errgroup.Group
	group.Go(func() error { ask(t, l.path, "snapshot"); return nil })
	rig.Pause(t, 500*time.Millisecond)
	for range 20 {
		group.Go(func() error {
			began := time.Now()
			e := ask(t, l.path, "sync", "-wait", "-timeout", "1s")
			if took := time.Since(began); e.Code != 1 || took > 8*time.Second || !strings.Contains(e.Output, "not done within 1s") {
				return fmt.Errorf("sync exited with %d after %s: %s", e.Code, took, e.Output)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	proxy.Heal()
	if e := ask(t, l.path, "sync", "-wait"); e.Code != 0 || !strings.Contains(e.Output, "is on the replica") {
		t.Errorf("sync exited with %d: %s", e.Code, e.Output)
	}
	l.end(t, sidecar)
}
