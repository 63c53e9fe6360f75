//go:build e2e

package e2e_test

import (
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// pair starts a primary with some commits and a follower with a warm copy.
func pair(t *testing.T, p rig.Place, more string) (primary, follower *peer) {
	t.Helper()
	primary, follower = newPeer(t, "a", p, more), newPeer(t, "b", p, more)
	primary.create(t, 20)
	primary.start(t)
	primary.await(t, "primary")
	follower.start(t)
	follower.awaitCopy(t, primary)
	return primary, follower
}

func TestOnePrimaryAndAWarmFollower(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		a, b := pair(t, p, "")
		a.write(t, "live.db", 30)
		b.awaitCopy(t, a)
		if s := b.await(t, "follower"); s.Lease.Holder != "a" || s.Lease.Generation != 1 {
			t.Errorf("the follower says %+v", s.Lease)
		}
		testdb.SameDatabase(t, b.live(), a.live())
		a.isLast(t)
	})
}
