//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// A node that is cut off keeps writers out for as long as it cannot tell
// whether another one is the primary, also one that has the database open.
func TestWritersOfANodeThatIsCutOffAreKeptOut(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	proxy := testbucket.NewProxy(t, p.Server.Endpoint())
	a := newPeer(t, "a", p, "")
	a.place = p.Via(proxy.Endpoint())
	a.create(t, 10)
	a.start(t)
	a.await(t, "primary")
	db := testdb.Open(t, a.live())
	testdb.Exec(t, db, "PRAGMA busy_timeout=0", "CREATE TABLE more (x)")
	proxy.Drop()
	a.await(t, "cut off")
	write := func() error {
		_, err := db.ExecContext(t.Context(), "INSERT INTO more VALUES (1)")
		return err
	}
	refused := 0
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if err := write(); err == nil || !testdb.Busy(err) {
			refused = 0
			return errors.Join(errors.New("a writer is let in"), err)
		}
		if refused++; refused < 20 {
			return errors.New("not refused for long yet")
		}
		return nil
	})
	proxy.Heal()
	a.await(t, "primary")
	rig.Eventually(t, rig.Limit, func(context.Context) error { return write() })
	a.mustSync(t, "live.db")
	testdb.Exec(t, db, "INSERT INTO more VALUES (2)")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	a.mustSync(t, "live.db")
	a.isLast(t)
}
