//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestADatabaseThatComesBackOlderGoesOnFromThere(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, db := live(t, testdb.Options{})
		testdb.Exec(t, db, "CREATE TABLE ballast AS SELECT randomblob(1 << 20) AS b")
		commit(t, db, 20)
		rig.ReplicateOnce(t, path, p)
		commit(t, db, 20)
		rig.ReplicateOnce(t, path, p)
		fork := p.Newest(t)
		older := rig.Restore(t, p)
		for range 3 {
			commit(t, db, 20)
			rig.ReplicateOnce(t, path, p)
		}
		tip, before := p.Newest(t), p.Uploaded(t)
		newest := rig.Restore(t, p)

		wipe(t, path)
		content, err := os.ReadFile(older)
		if err == nil {
			err = os.WriteFile(path, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		rig.ReplicateOnce(t, path, p)
		if n := p.Newest(t); n != tip+1 {
			t.Errorf("the newest TXID is %d after the tip %d", n, tip)
		}
		if n := p.Uploaded(t) - before; n > 512<<10 {
			t.Errorf("%d bytes were uploaded, more than what changed", n)
		}
		restoresEqual(t, p, path)
		testdb.SameDatabase(t, rig.Restore(t, p, "-txid", fmt.Sprint(tip)), newest)
		testdb.SameDatabase(t, rig.Restore(t, p, "-txid", fmt.Sprint(fork)), older)
		commit(t, testdb.Open(t, path), 10)
		rig.ReplicateOnce(t, path, p)
		restoresEqual(t, p, path)
		testdb.SameDatabase(t, rig.LitestreamRestore(t, p), path)
	})
}
