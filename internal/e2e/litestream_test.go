//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestLitestreamRestoresWhatWeWrote(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, db := live(t, testdb.Options{})
		commit(t, db, 50)
		sidecar := rig.Replicate(t, path, p)
		awaitFile(t, p)
		load := modest(400)
		load.Rate = 200
		testdb.StartWriter(t, path, load).Wait(t)
		stop(t, sidecar)
		restoresEqual(t, p, path)
		testdb.SameDatabase(t, rig.LitestreamRestore(t, p), path)

		newest := p.Newest(t)
		for _, txid := range []uint64{newest / 2, newest - 1} {
			flag := []string{"-txid", fmt.Sprintf("%016x", txid)}
			ours, theirs := rig.Restore(t, p, flag...), rig.LitestreamRestore(t, p, flag...)
			testdb.SameDatabase(t, ours, theirs)
			testdb.Checkpoint(t, ours)
			testdb.Checkpoint(t, theirs)
			testdb.SamePages(t, ours, theirs, 4096)
			testdb.ChainPrefix(t, ours, path)
		}
	})
}

// hasty makes litestream compact, snapshot and delete within seconds.
const hasty = `
levels:
  - interval: 1s
  - interval: 3s
snapshot:
  interval: 4s
  retention: 1h
l0-retention: 1s
l0-retention-check-interval: 1s
`

func TestWeRestoreWhatLitestreamWroteAndGoOnFromThere(t *testing.T) {
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
		written := p.Newest(t)
		testdb.SameDatabase(t, rig.LitestreamRestore(t, p), path)
		restoresEqual(t, p, path)

		sidecar := rig.Replicate(t, path, p)
		commit(t, db, 30)
		load := modest(200)
		load.Rate = 200
		testdb.StartWriter(t, path, load).Wait(t)
		stop(t, sidecar)
		if n := p.Newest(t); n <= written {
			t.Errorf("the newest TXID is %d, want more than litestream's %d", n, written)
		}
		restoresEqual(t, p, path)
		testdb.SameDatabase(t, rig.LitestreamRestore(t, p), path)
	})
}

// levels tells which of the levels has no file beyond the first transaction.
func levels(t *testing.T, p rig.Place, want ...int) error {
	t.Helper()
	for _, level := range want {
		n := 0
		for _, f := range p.Level(t, level) {
			if f.Max > 1 {
				n++
			}
		}
		if n == 0 {
			return fmt.Errorf("level %d has no file", level)
		}
	}
	return nil
}
