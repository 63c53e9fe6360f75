//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// A node may be the only one that holds what was lost on the bucket.
func TestANodeKeepsWhatItsReplicaHasLost(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, p rig.Place) (all bool){
		"the newest file": func(t *testing.T, p rig.Place) bool {
			level := p.Level(t, 0)
			remove(t, level[len(level)-1].Path())
			return false
		},
		"everything but the lock": func(t *testing.T, p rig.Place) bool {
			remove(t, filepath.Join(p.Dir, "ltx"))
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := rig.Directory(t)
			a := newPeer(t, "a", p, "")
			a.create(t, 10)
			a.start(t)
			a.await(t, "primary")
			a.write(t, "live.db", 5)
			a.mustSync(t, "live.db")
			rig.Eventually(t, rig.Limit, func(context.Context) error {
				kept, err := filepath.Glob(filepath.Join(stateDir(a.live()), "spool", "*.ltx"))
				if err == nil && len(kept) > 0 {
					err = fmt.Errorf("%q are not confirmed", kept)
				}
				return err
			})
			stop(t, a.proc)
			before, err := testdb.Describe(t.Context(), a.live())
			if err != nil {
				t.Fatal(err)
			}
			all := lose(t, p)
			a.start(t)
			rig.Eventually(t, rig.Limit, func(context.Context) error {
				if !strings.Contains(a.proc.Output(), "accept-loss") {
					return errors.New("nothing was said of what is missing")
				}
				return nil
			})
			if s, err := a.status(t); err != nil || s.Lease.Role == "primary" {
				t.Errorf("it became primary: %+v, %v", s, err)
			}
			if after, err := testdb.Describe(t.Context(), a.live()); err != nil || after.Chain != before.Chain {
				t.Errorf("the database holds %v, it held %v; %v", after.Chain, before.Chain, err)
			}
			if e := a.order(t, "promote", "-accept-loss"); e.Code != 0 {
				t.Fatalf("promote -accept-loss ended with %d: %s", e.Code, e.Output)
			}
			if s := a.await(t, "primary"); !all && s.Databases[0].Quarantined == 0 {
				t.Error("what the replica does not hold was not set aside")
			}
			a.write(t, "live.db", 5)
			a.mustSync(t, "live.db")
			a.isLast(t)
		})
	}
}

func TestAFollowerWhoseStateIsRemovedStillBecomesAPrimary(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	a, b := pair(t, p, "")
	a.write(t, "live.db", 5)
	b.awaitCopy(t, a)
	remove(t, stateDir(b.live()))
	a.write(t, "live.db", 5)
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if !strings.Contains(b.proc.Output(), "following anew") {
			return errors.New("the loss was not noticed")
		}
		return nil
	})
	b.awaitCopy(t, a)
	stop(t, a.proc)
	b.await(t, "primary")
	b.write(t, "live.db", 5)
	b.mustSync(t, "live.db")
	b.isLast(t)
}
