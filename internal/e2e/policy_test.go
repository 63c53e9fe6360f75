//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
)

// policed refuses what etc/bucket-policy.json refuses: to store a file without
// asking for its absence, and to delete the lease.
func policed(asked, refused *atomic.Int32) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			kind := testbucket.KindOf(r)
			stores := strings.HasSuffix(r.URL.Path, ".ltx") && (kind == testbucket.Put || kind == testbucket.Complete)
			if stores {
				asked.Add(1)
			}
			if stores && r.Header.Get("If-None-Match") == "" || kind == testbucket.Delete && strings.HasSuffix(r.URL.Path, "/lock.json") {
				refused.Add(1)
				http.Error(w, "<Error><Code>AccessDenied</Code></Error>", http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func TestTheBucketPolicyRefusesNothingThatANodeDoes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../etc/bucket-policy.json")
	if err != nil || !json.Valid(text) {
		t.Fatalf("the policy is no JSON, %v", err)
	}
	w := startWeather(t)
	var asked, refused atomic.Int32
	w.proxy.Keep(policed(&asked, &refused))
	l := startLoopAt(t, w.direct, 60) // its base is sent in parts
	sidecar := sidecarWith(t, l.path, w.Place, secondsOnly+"lease: {enabled: true, node: a, ttl: 6s}\naddr: 127.0.0.1:0\n")
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		for _, level := range []int{1, 2, 3} {
			if len(w.direct.Level(t, level)) == 0 {
				return errors.New("not all levels have files")
			}
		}
		return nil
	})
	l.writer.Stop(t)
	stop(t, sidecar)
	restoresEqual(t, w.direct, l.path)
	if asked.Load() == 0 || refused.Load() != 0 {
		t.Errorf("%d of %d requests to store a file, or to delete the lease, were refused", refused.Load(), asked.Load())
	}
}
