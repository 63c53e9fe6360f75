//go:build e2e

package e2e_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/scratch"
	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/replica/apply"
	"github.com/tidemark-io/tidemark/storage"
)

const followedLedger = `CREATE TABLE ledger (id INTEGER PRIMARY KEY, w INTEGER, pad BLOB);
CREATE TABLE total (n INTEGER, w INTEGER);
INSERT INTO total VALUES (0, 0);
CREATE TRIGGER more AFTER INSERT ON ledger BEGIN UPDATE total SET n = n+1, w = w+new.w; END;
CREATE TRIGGER other AFTER UPDATE OF w ON ledger BEGIN UPDATE total SET w = w-old.w+new.w; END`

// followed is a copy that an errgroup keeps at the newest state.
type followed struct {
	copy     *apply.Copy
	follower *replica.Follower
	path     string
}

func follow(t *testing.T, r *replica.Replica) *followed {
	t.Helper()
	dir := t.TempDir()
	f := &followed{path: filepath.Join(dir, "copy.db")}
	state := filepath.Join(dir, ".copy.db-tidemark") // where capture keeps its own
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := replica.Seed(t.Context(), r, state, replica.RestoreOptions{Path: f.path}); err != nil {
		t.Fatal(err)
	}
	space, err := scratch.New(t.TempDir(), 0)
	if err == nil {
		f.copy, err = apply.Open(t.Context(), f.path, state, apply.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	f.follower = replica.NewFollower(r, f.copy, replica.FollowOptions{Interval: time.Millisecond, Scratch: space})
	return f
}

func TestDuckDBReadsACopyWhileItFollows(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path := filepath.Join(t.TempDir(), "live.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, followedLedger)
	rig.ReplicateOnce(t, path, p)
	bucket, err := storage.NewDir(p.Dir)
	if err != nil {
		t.Fatal(err)
	}
	r := replica.New(bucket, replica.LayoutDir, slog.New(slog.DiscardHandler))
	f := follow(t, r)
	reader := exec.Command(rig.Tool(t, "venv/bin/python"), "testdata/follow_reader.py", f.path)
	reader.Stderr = os.Stderr
	input, err := reader.StdinPipe()
	output, err2 := reader.StdoutPipe()
	if err := errors.Join(err, err2, reader.Start()); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	if !lines.Scan() {
		t.Fatal("DuckDB did not attach the copy")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	errDone := errors.New("done")
	var g errgroup.Group
	g.Go(func() error { return f.follower.Run(ctx) })
	sidecar := rig.Replicate(t, path, p)
	for i := range 800 {
		testdb.Exec(t, db, fmt.Sprintf("INSERT INTO ledger(w, pad) VALUES (%d, randomblob(%d))", i, 50*(i%60)),
			fmt.Sprintf("UPDATE ledger SET w = w+1 WHERE id %% 37 = %d", i%37))
	}
	stop(t, sidecar)
	cancel(errDone)
	if err := g.Wait(); !errors.Is(err, errDone) {
		t.Error(err)
	}
	if _, err := f.follower.CatchUp(t.Context()); err != nil {
		t.Error(err)
	}
	var reads, busy, last int
	err = input.Close()
	if lines.Scan() {
		_, err2 = fmt.Sscan(lines.Text(), &reads, &busy, &last)
	}
	if err := errors.Join(err, err2, reader.Wait()); err != nil || reads < 10 {
		t.Errorf("reader: %d reads, %v", reads, err)
	}
	t.Logf("%d reads, %d busy, last row %d", reads, busy, last)
	testdb.SameDatabase(t, path, f.path)
	if err := f.copy.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	testdb.SameDatabase(t, path, f.path)
	goesOn(t, f.path, p)
}

// goesOn checks that capture goes on from the page sums that following kept.
func goesOn(t *testing.T, path string, p rig.Place) {
	t.Helper()
	bases, before := len(p.Level(t, 9)), p.Newest(t)
	testdb.Exec(t, testdb.Open(t, path), "INSERT INTO ledger(w, pad) VALUES (1, randomblob(10))")
	rig.ReplicateOnce(t, path, p)
	if n := len(p.Level(t, 9)); n != bases || p.Newest(t) != before+1 {
		t.Errorf("%d full copies after promotion, %d before; transaction %d after %d", n, bases, p.Newest(t), before)
	}
	testdb.SameDatabase(t, path, rig.Restore(t, p))
}
