//go:build e2e

package e2e_test

import (
	"context"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// The peer by itself: what the other tests of it stand on.
func TestLitestreamRestoresWhatItWrote(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, db := live(t, testdb.Options{})
		commit(t, db, 50)
		peer := rig.Litestream(t, path, p, hasty)
		writer := testdb.StartWriter(t, path, testdb.Load{Seed: 9, Rate: 100, Payload: 200, Churn: 2, Body: 900})
		rig.Eventually(t, rig.Limit, func(context.Context) error { return levels(t, p, 0, 1, 2, 9) })
		writer.Stop(t)
		if e := peer.Stop(t, rig.Limit); e.Code != 0 {
			t.Fatalf("litestream exited with %d", e.Code)
		}
		t.Log(p.Files(t), p.Uploaded(t))
		testdb.SameDatabase(t, rig.LitestreamRestore(t, p), path)
	})
}
