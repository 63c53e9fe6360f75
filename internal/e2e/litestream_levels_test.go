//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// ends are the TXIDs at which any file of a replica ends, in order.
func ends(t *testing.T, p rig.Place) []uint64 {
	t.Helper()
	all := map[uint64]bool{}
	for _, f := range p.Files(t) {
		all[f.Max] = true
	}
	return slices.Sorted(maps.Keys(all))
}

func TestLitestreamRestoresEveryStateOfACompactedReplica(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, db := live(t, testdb.Options{})
		commit(t, db, 20)
		sidecar := sidecarWith(t, path, p, "levels: [{interval: 1s}, {interval: 3s}, {interval: 6s}]\n"+
			"snapshot: {interval: 8s, retention: 1h}\nl0-retention: 4s\n")
		awaitFile(t, p)
		began := time.Now()
		rig.Eventually(t, rig.Limit, func(context.Context) error {
			commit(t, db, 1)
			rig.Pause(t, 150*time.Millisecond)
			if time.Since(began) < 20*time.Second {
				return fmt.Errorf("only %s old", time.Since(began))
			}
			return levels(t, p, 0, 1, 2, 3, 9)
		})
		stop(t, sidecar)
		states, restored := ends(t, p), 0
		for _, txid := range states {
			ours := filepath.Join(t.TempDir(), "ours.db")
			e := rig.TryRestore(t, p, ours, "-txid", fmt.Sprint(txid))
			if e.Code != 0 {
				t.Errorf("%d: restore exited with %d: %s", txid, e.Code, e.Output)
				continue
			}
			theirs := rig.LitestreamRestore(t, p, "-txid", fmt.Sprintf("%016x", txid))
			testdb.SameDatabase(t, ours, theirs)
			testdb.ChainPrefix(t, theirs, path)
			restored++
		}
		t.Logf("%d of %d states, of %s", restored, len(states), strings.Join(counts(t, p), ", "))
		if restored < 20 {
			t.Errorf("only %d states", restored)
		}
		restoresEqual(t, p, path)
		testdb.SameDatabase(t, rig.LitestreamRestore(t, p), path)
	})
}

// counts tells how many files each level has.
func counts(t *testing.T, p rig.Place) (out []string) {
	t.Helper()
	for level := range 10 {
		if n := len(p.Level(t, level)); n > 0 {
			out = append(out, fmt.Sprintf("%d of level %d", n, level))
		}
	}
	return out
}
