//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// brisk makes a sidecar merge, snapshot and delete within seconds.
const brisk = `
levels: [{interval: 1s}, {interval: 2s}, {interval: 4s}]
snapshot: {interval: 5s, retention: 30s}
l0-retention: 2s
dbs:
  - path: %q
    replica: {url: %q}
`

// restoredReport is what restore -json says.
type restoredReport struct {
	Position struct{ TXID uint64 }
	Time     time.Time
	Next     struct {
		TXID uint64
		Time time.Time
	}
}

func TestMomentsWhileFilesAreMergedAndDeleted(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, db := live(t, testdb.Options{})
		commit(t, db, 5)
		sidecar := rig.Tidemark(t, p.Env, "replicate", "-log-level", "warn", "-config", config(t, brisk, path, p.URL))
		awaitFile(t, p)
		commits := map[uint64]int64{p.Newest(t): 5}
		var all []instant
		rig.Eventually(t, rig.Limit, func(context.Context) error {
			i := instants(t, p, path, 1)[0]
			commits[i.txid] = i.commits
			all = append(all, i)
			if len(all)%8 == 0 { // files are deleted meanwhile
				i.comesBack(t, p, path, commits)
			}
			if time.Since(all[0].at) < 15*time.Second {
				return fmt.Errorf("only %d instants", len(all))
			}
			return levels(t, p, 1, 2, 3, 9)
		})
		if e := sidecar.Stop(t, rig.Limit); e.Code != 0 {
			t.Fatalf("the sidecar exited with %d", e.Code)
		}
		late := all[len(all)-1].at.Add(-10 * time.Second)
		for k := len(all) - 1; k >= 0 && all[k].at.After(late); k -= 1 + len(all)/20 {
			all[k].comesBack(t, p, path, commits)
		}
		says(t, verify(t, p, "-against", path), 0, "equals transaction")
		restoresEqual(t, p, path)
	})
}

// comesBack restores the state of an instant: the newest one that is there and
// not newer, as it was.
func (i instant) comesBack(t *testing.T, p rig.Place, path string, commits map[uint64]int64) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "restored.db")
	e := rig.TryRestore(t, p, out, "-json", "-timestamp", stamp(i.at))
	var r restoredReport
	if err := json.Unmarshal([]byte(e.Output), &r); err != nil || e.Code != 0 {
		t.Errorf("at %s: exit code %d, %v: %s", stamp(i.at), e.Code, err, e.Output)
		return
	}
	got := testdb.ChainPrefix(t, out, path).N
	if want := commits[r.Position.TXID]; got != want || got > i.commits || r.Time.After(i.at) {
		t.Errorf("at %s, after %d commits: got transaction %d of %s with %d commits, it had %d",
			stamp(i.at), i.commits, r.Position.TXID, stamp(r.Time), got, want)
	}
	if r.Position.TXID != i.txid && !r.Next.Time.After(i.at) {
		t.Errorf("at %s: got transaction %d, though %d of %s can be restored", stamp(i.at), r.Position.TXID, r.Next.TXID, stamp(r.Next.Time))
	}
}
