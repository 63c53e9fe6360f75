//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// proving reads the replica again all the time.
const proving = "verify-interval: 1s\nlevels: [{interval: 1h}]\nsnapshot: {interval: 24h}\n"

// sound waits until a verify finds nothing wrong.
func sound(t *testing.T, p rig.Place) {
	t.Helper()
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if e := rig.Tidemark(t, p.Env, "verify", p.URL).Wait(t, rig.Limit); e.Code != 0 {
			return fmt.Errorf("verify exited with %d: %s", e.Code, e.Output)
		}
		return nil
	})
}

func TestADamagedNewestSnapshotIsReplacedThoughNothingChanges(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, db := live(t, testdb.Options{})
		sidecar := sidecarWith(t, path, p, proving)
		awaitFile(t, p)
		commit(t, db, 20)
		if e := ask(t, path, "snapshot"); e.Code != 0 {
			t.Fatalf("snapshot exited with %d: %s", e.Code, e.Output)
		}
		snapshots := p.Level(t, 9)
		bad := snapshots[len(snapshots)-1]
		if bad.Max < 2 {
			t.Fatalf("the newest snapshot is %s", bad.Name())
		}
		flip(t, bad.Path())
		rig.Eventually(t, rig.Limit, func(context.Context) error {
			if slices.ContainsFunc(p.Level(t, 9), func(f rig.File) bool { return f.Max == bad.Max }) {
				return errors.New("the damaged snapshot is there still")
			}
			return nil
		})
		sound(t, p)
		restoresEqual(t, p, path)
		testdb.SameDatabase(t, rig.LitestreamRestore(t, p), path)
		commit(t, db, 3)
		stop(t, sidecar)
		restoresEqual(t, p, path)
		testdb.SameDatabase(t, rig.LitestreamRestore(t, p), path)
	})
}

func TestADamagedFileIsStoredAgainFromTheCopyHere(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, db := live(t, testdb.Options{})
		sidecar := sidecarWith(t, path, p, proving)
		awaitFile(t, p)
		for range 6 {
			commit(t, db, 1)
			if e := ask(t, path, "sync", "-wait"); e.Code != 0 {
				t.Fatalf("sync exited with %d: %s", e.Code, e.Output)
			}
		}
		raw := p.Level(t, 0)
		flip(t, raw[len(raw)-2].Path())
		flip(t, p.Level(t, 9)[0].Path())
		sound(t, p)
		if n := len(p.Level(t, 9)); n != 1 {
			t.Errorf("%d snapshots, want the base alone", n)
		}
		stop(t, sidecar)
		restoresEqual(t, p, path)
		for _, f := range raw {
			testdb.ChainPrefix(t, rig.Restore(t, p, "-txid", fmt.Sprint(f.Max)), path)
		}
	})
}
