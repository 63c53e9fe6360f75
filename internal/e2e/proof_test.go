//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// flip changes one bit of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDamageOfTheReplicaIsFoundAndSteppedOver(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, db := live(t, testdb.Options{})
		sidecar := sidecarWith(t, path, p, "verify-interval: 1s\nlevels: [{interval: 1h}]\n")
		awaitFile(t, p)
		for range 6 {
			commit(t, db, 1)
			if e := ask(t, path, "sync", "-wait"); e.Code != 0 {
				t.Fatalf("sync exited with %d: %s", e.Code, e.Output)
			}
		}
		says := func(want string) func(context.Context) error {
			return func(context.Context) error {
				if e := ask(t, path, "status", "-json"); !strings.Contains(e.Output, want) {
					return fmt.Errorf("status says %s, want %s", e.Output, want)
				}
				return nil
			}
		}
		rig.Eventually(t, rig.Limit, says(`"whole_at"`))
		if e := ask(t, path, "status"); !strings.Contains(e.Output, " replicating ") {
			t.Errorf("status says %s", e.Output)
		}
		raw := p.Level(t, 0)
		bad := raw[len(raw)-2]
		flip(t, bad.Path())
		rig.Eventually(t, rig.Limit, says(`"error": "damaged on the replica`))
		rig.Eventually(t, rig.Limit, func(context.Context) error {
			if s := p.Level(t, 9); s[len(s)-1].Max < bad.Max {
				return fmt.Errorf("no snapshot stands in for %s", bad.Name())
			}
			return nil
		})
		rig.Eventually(t, rig.Limit, says(`"state": "replicating"`))
		commit(t, db, 2)
		stop(t, sidecar)
		restoresEqual(t, p, path)
		testdb.SameDatabase(t, rig.LitestreamRestore(t, p), path)
	})
}
