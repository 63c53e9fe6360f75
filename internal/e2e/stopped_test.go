//go:build e2e

package e2e_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// stoppedFor is how long a sidecar stands still at least.
const stoppedFor = 130 * time.Second

// The application commits gently and makes checkpoints of its own meanwhile,
// without syncs, so that it disturbs no other test: it goes on while this one
// waits for its turn among those that run in parallel.
func TestSidecarThatStoodStillForMinutes(t *testing.T) {
	r := newReporting(t, t.TempDir())
	r.start(t)
	r.settled(t)
	w := testdb.StartWriter(t, r.path, testdb.Load{Seed: 3, Rate: 10, Payload: 300, Churn: 2, Body: 2000, Sync: "OFF"})
	r.sidecar.Signal(t, syscall.SIGSTOP)
	before, since := r.place.Newest(t), time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	db := testdb.Open(t, r.path)
	testdb.Exec(t, db, "PRAGMA busy_timeout=100", "PRAGMA synchronous=OFF")
	var group errgroup.Group
	group.Go(func() error { return checkpointing(ctx, db) })

	t.Parallel()
	rig.Pause(t, max(0, time.Until(since.Add(stoppedFor))))
	cancel()
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := r.place.Newest(t); n > before {
		t.Fatalf("TXID %d was stored while the sidecar stood still", n)
	}
	log := size(t, r.path+"-wal")
	t.Logf("it stood still for %v, the log has %d bytes", time.Since(since), log)
	r.sidecar.Signal(t, syscall.SIGCONT)
	awaitTXID(t, r.place, before+1)
	rig.Eventually(t, rig.Limit, func(ctx context.Context) error { // while the writer goes on
		if _, err := db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil && !testdb.Busy(err) {
			t.Fatal(err)
		}
		if now := size(t, r.path+"-wal"); now > 1<<20 || now > log/4 {
			return fmt.Errorf("the log has %d bytes", now)
		}
		return nil
	})
	if sum := w.Stop(t); sum.Busy > 0 || sum.Commits < 500 {
		t.Errorf("%d commits, the writer found the database locked %d times", sum.Commits, sum.Busy)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	r.mends(t, 0)
}

// checkpointing makes checkpoints, each kind in its turn, which may find
// somebody in their way, until ctx ends.
func checkpointing(ctx context.Context, db *sql.DB) error {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for i := 0; ; i++ {
		mode := []string{"PASSIVE", "FULL", "RESTART", "TRUNCATE"}[i%4]
		_, err := db.ExecContext(context.WithoutCancel(ctx), "PRAGMA wal_checkpoint("+mode+")")
		if err != nil && !testdb.Busy(err) {
			return fmt.Errorf("checkpoint %s: %w", mode, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// size returns the size of a file.
func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
