//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

const (
	catalogs    = 100
	transaction = 2 * time.Second
)

// TestLongTransactionsNeverFindTheDatabaseLocked makes a hundred concurrent
// transactions as DuckLake does: each reads its catalog, works for two seconds
// on that snapshot, writes and commits, and has the catalog for itself. SQLite
// refuses the write at once if anybody else wrote, or holds the write lock.
func TestLongTransactionsNeverFindTheDatabaseLocked(t *testing.T) {
	t.Parallel()
	alone, _ := makeCatalogs(t)
	if n := transactions(t, alone); n != 0 {
		t.Fatalf("%d of %d transactions were refused without any sidecar", n, catalogs)
	}
	paths, dbs := makeCatalogs(t)
	sidecar := rig.Tidemark(t, nil, "replicate", "-config", config(t, "%s", dbs))
	for _, path := range paths {
		awaitFile(t, rig.Place{Dir: path + ".bucket"})
	}
	if n := transactions(t, paths); n != 0 {
		t.Errorf("%d of %d transactions were refused beside the sidecar", n, catalogs)
	}
	stop(t, sidecar)
	for _, path := range paths {
		restoresEqual(t, rig.Place{URL: "file://" + path + ".bucket", Dir: path + ".bucket"}, path)
	}
	other, dbs := makeCatalogs(t)
	conf := filepath.Join(t.TempDir(), "litestream.yml")
	if err := os.WriteFile(conf, []byte(dbs), 0o600); err != nil {
		t.Fatal(err)
	}
	peer := rig.Start(t, rig.Command{Path: rig.Tool(t, "bin/litestream"), Args: []string{"replicate", "-config", conf}})
	rig.Pause(t, time.Second)
	t.Logf("beside litestream %d of %d transactions were refused", transactions(t, other), catalogs)
	peer.Stop(t, rig.Limit)
}

// makeCatalogs makes databases, and the settings that replicate each to a
// directory beside it, which both tools read.
func makeCatalogs(t *testing.T) (paths []string, dbs string) {
	t.Helper()
	dir := t.TempDir()
	var text strings.Builder
	text.WriteString("dbs:\n")
	for i := range catalogs {
		path := filepath.Join(dir, fmt.Sprintf("%d.sqlite", i))
		db := testdb.Create(t, path, testdb.Options{})
		testdb.Exec(t, db, "CREATE TABLE snapshot (id INTEGER PRIMARY KEY, changes)", "INSERT INTO snapshot VALUES (0, '')")
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
		fmt.Fprintf(&text, "  - path: %s\n    replica:\n      url: file://%s.bucket\n", path, path)
	}
	return paths, text.String()
}

// transactions makes one transaction on each database, all at once, and returns
// how many of them found it locked.
func transactions(t *testing.T, paths []string) int64 {
	t.Helper()
	var refused atomic.Int64
	var group errgroup.Group
	for _, path := range paths {
		// Something for a sidecar to do while the transaction is open.
		setup := testdb.Open(t, path)
		testdb.Exec(t, setup, "INSERT INTO snapshot (changes) VALUES (randomblob(50000))")
		group.Go(func() error {
			err := transact(t.Context(), t, path)
			if testdb.Busy(err) {
				refused.Add(1)
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return refused.Load()
}

func transact(ctx context.Context, t *testing.T, path string) error {
	tx, err := testdb.Open(t, path).BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var newest int64
	if err := tx.QueryRowContext(ctx, "SELECT max(id) FROM snapshot").Scan(&newest); err != nil {
		return err
	}
	work := time.NewTimer(transaction)
	defer work.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-work.C:
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO snapshot VALUES (?, randomblob(3000))", newest+1); err != nil {
		return err
	}
	return tx.Commit()
}
