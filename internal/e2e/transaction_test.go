//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

const memoryLimit = 256 * megabyte

// giant inserts 300 MB that do not compress into the open transaction.
const giant = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 300)
	INSERT INTO giant SELECT randomblob(1000000) FROM n`

func TestGiantTransactionNeedsLittleMemoryAndIsPublishedWhenCommitted(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, db := live(t, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE giant (b)")
	p.Env = []string{"GOMEMLIMIT=256MiB"}
	sidecar := rig.Replicate(t, path, p)
	awaitFile(t, p)

	testdb.Exec(t, db, "BEGIN", giant)
	published := p.Newest(t)
	testdb.Exec(t, db, "ROLLBACK")
	commit(t, db, 3)
	awaitTXID(t, p, published+1)
	if up := p.Uploaded(t); up > 10*megabyte {
		t.Errorf("%d MB are stored, but 300 MB were rolled back and nothing else is large", up/megabyte)
	}

	if e := rig.Tidemark(t, nil, "sync", "-wait", path).Wait(t, rig.Limit); e.Code != 0 { // the last of the three
		t.Fatalf("sync exited with %d: %s", e.Code, e.Output)
	}
	before := p.Newest(t)
	testdb.Exec(t, db, "BEGIN", giant)
	if n := p.Newest(t); n != before {
		t.Errorf("TXID %d was published while the transaction was open, after %d", n, before)
	}
	testdb.Exec(t, db, "COMMIT")
	awaitTXID(t, p, before+1)
	if peak := stop(t, sidecar).Peak; peak >= memoryLimit {
		t.Errorf("the sidecar took %d MB, want less than %d", peak/megabyte, memoryLimit/megabyte)
	} else {
		t.Logf("the sidecar took %d MB", peak/megabyte)
	}
	restoresEqual(t, p, path)
}

func TestGiantTransactionMadeWhileTheSidecarWasDown(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, db := live(t, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE giant (b)")
	p.Env = []string{"GOMEMLIMIT=256MiB"}
	rig.ReplicateOnce(t, path, p)
	testdb.Exec(t, db, "BEGIN", giant, "COMMIT")
	e := rig.Replicate(t, path, p, "-once").Wait(t, rig.Limit)
	if e.Code != 0 || e.Peak >= memoryLimit {
		t.Fatalf("replicate -once exited with %d and took %d MB, want 0 and less than %d", e.Code, e.Peak/megabyte, memoryLimit/megabyte)
	}
	out := filepath.Join(t.TempDir(), "restored.db")
	if e := rig.TryRestore(t, p, out); e.Code != 0 || e.Peak >= memoryLimit {
		t.Fatalf("restore exited with %d and took %d MB, want 0 and less than %d", e.Code, e.Peak/megabyte, memoryLimit/megabyte)
	}
	testdb.SameDatabase(t, out, path)
}

func TestOpenTransactionIsNeverPublished(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, db := live(t, testdb.Options{})
	commit(t, db, 5)
	testdb.Exec(t, db, "CREATE TABLE spill (b)")
	rig.ReplicateOnce(t, path, p)
	// A cache of two pages makes the transaction spill into the log.
	testdb.Exec(t, db, "PRAGMA cache_size=2", "BEGIN", `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 50)
		INSERT INTO spill SELECT randomblob(20000) FROM n`)
	rig.ReplicateOnce(t, path, p)
	restored := rig.Restore(t, p)
	if n := testdb.Number(t, testdb.Open(t, restored), "SELECT count(*) FROM spill"); n != 0 {
		t.Errorf("%d rows of an open transaction were restored", n)
	}
	testdb.Exec(t, db, "COMMIT")
	rig.ReplicateOnce(t, path, p)
	restoresEqual(t, p, path)
	rig.Eventually(t, rig.Limit, func(ctx context.Context) error {
		if l, err := testdb.Verify(ctx, path); err != nil || l.N != 5 {
			return fmt.Errorf("live chain at %v: %w", l, err)
		}
		return nil
	})
}
