//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// keySource is a file from which a sidecar has its credentials, in one way or
// the other.
type keySource struct {
	file, format string
	env          []string
}

// keySources are a shared credentials file, and a process that prints them.
func keySources(t *testing.T) map[string]keySource {
	t.Helper()
	dir := t.TempDir()
	shared, printed, profile := filepath.Join(dir, "credentials"), filepath.Join(dir, "printed.json"), filepath.Join(dir, "config")
	text := "[default]\ncredential_process = cat " + printed + "\n"
	if err := os.WriteFile(profile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	none := []string{"AWS_EC2_METADATA_DISABLED=true"}
	return map[string]keySource{
		"file": {shared, "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n",
			append(none, "AWS_SHARED_CREDENTIALS_FILE="+shared, "AWS_CONFIG_FILE="+os.DevNull)},
		"process": {printed, `{"Version": 1, "AccessKeyId": %q, "SecretAccessKey": %q, "Expiration": "2099-01-01T00:00:00Z"}`,
			append(none, "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull, "AWS_CONFIG_FILE="+profile)},
	}
}

// write replaces the file at once, as those who rotate keys do.
func (s keySource) write(t *testing.T, id, secret string) {
	t.Helper()
	next := s.file + ".next"
	if err := os.WriteFile(next, fmt.Appendf(nil, s.format, id, secret), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, s.file); err != nil {
		t.Fatal(err)
	}
}

// signed counts the requests that a key signed.
func signed(proxy *testbucket.Proxy, id string) *atomic.Int64 {
	n := &atomic.Int64{}
	proxy.Keep(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.Header.Get("Authorization"), "Credential="+id+"/") {
				n.Add(1)
			}
			next.ServeHTTP(w, r)
		})
	})
	return n
}

// The keys expire, are replaced by keys that are not valid yet, and those by
// good ones; nobody restarts the sidecar.
func TestKeysThatExpireAreReadAgainWithoutARestart(t *testing.T) {
	t.Parallel()
	for _, keys := range keySources(t) {
		p := rig.S3(t)
		proxy := testbucket.NewProxy(t, p.Meter.Endpoint())
		early, good := signed(proxy, "EARLY"), signed(proxy, testbucket.AccessKey)
		path, db := live(t, testdb.Options{})
		keys.write(t, testbucket.AccessKey, testbucket.SecretKey)
		via := p.Via(proxy.Endpoint())
		via.Env = keys.env
		sidecar := rig.Replicate(t, path, via)
		awaitFile(t, p)

		proxy.Storm(400, "ExpiredToken")
		known := good.Load()
		commit(t, db, 5)
		awaitSigned(t, good, known)
		keys.write(t, "EARLY", "not valid yet")
		awaitSigned(t, early, 0)
		proxy.Heal()
		commit(t, db, 5)
		awaitLine(t, sidecar, "upload failed") // the server does not know the key
		keys.write(t, testbucket.AccessKey, testbucket.SecretKey)
		awaitLine(t, sidecar, "upload recovered")
		stop(t, sidecar)
		restoresEqual(t, p, path)
	}
}

// awaitSigned waits for a request that a key signed after n others.
func awaitSigned(t *testing.T, key *atomic.Int64, n int64) {
	t.Helper()
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if key.Load() <= n {
			return fmt.Errorf("%d requests are signed with the key", n)
		}
		return nil
	})
}
