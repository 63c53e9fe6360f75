//go:build e2e

package e2e_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// victim is a database that things happen to, with its replica and, at times,
// one connection of an application.
type victim struct {
	path  string
	place rig.Place
	rnd   *rand.Rand
	conn  *sql.DB // nil: the application is not there
	kept  string  // a file that one step puts aside for another
	// sidecar is that of the table; nil: it is down, or not of this victim alone.
	sidecar *rig.Process
	// conf is the configuration of the sidecar; empty: none is needed.
	conf string
	// process writes on a connection of another process; nil: nobody does.
	process *testdb.WriterProcess
}

// app returns the application's connection, which it opens if need be.
func (v *victim) app(t *testing.T) *sql.DB {
	t.Helper()
	if v.conn == nil {
		v.conn = testdb.Open(t, v.path)
	}
	return v.conn
}

// leave closes the application's connection. Files of a database may be
// opened otherwise only then: to close one drops SQLite's locks.
func (v *victim) leave(t *testing.T) {
	t.Helper()
	if v.conn == nil {
		return
	}
	if err := v.conn.Close(); err != nil {
		t.Fatal(err)
	}
	v.conn = nil
}

// sql runs statements of the application, each until nobody is in its way.
func (v *victim) sql(t *testing.T, queries ...string) {
	t.Helper()
	for _, q := range queries {
		rig.Eventually(t, rig.Limit, func(ctx context.Context) error {
			_, err := v.app(t).ExecContext(ctx, q)
			if err != nil && !testdb.Busy(err) {
				t.Fatalf("%s: %v", q, err)
			}
			return err
		})
	}
}

// attempt runs a statement that may find the database locked.
func (v *victim) attempt(t *testing.T, query string) {
	t.Helper()
	if _, err := v.app(t).ExecContext(t.Context(), query); err != nil && !testdb.Busy(err) {
		t.Fatalf("%s: %v", query, err)
	}
}

// empty puts all of the WAL into the database file and truncates it.
func (v *victim) empty(t *testing.T) {
	t.Helper()
	v.checkpoint(t, "TRUNCATE")
}

// checkpoint tries a checkpoint until nobody is in its way.
func (v *victim) checkpoint(t *testing.T, mode string) {
	t.Helper()
	rig.Eventually(t, rig.Limit, func(ctx context.Context) error {
		var busy, frames, done int64
		err := v.app(t).QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &frames, &done)
		if err == nil && busy != 0 {
			err = errors.New("something is in the way of the checkpoint")
		}
		return err
	})
}

// commit makes n small commits on the application's connection.
func (v *victim) commit(t *testing.T, n int64) {
	t.Helper()
	load := modest(n)
	load.Seed = v.rnd.Int64()
	v.write(t, load)
}

// write makes commits on the application's connection.
func (v *victim) write(t *testing.T, load testdb.Load) testdb.Summary {
	t.Helper()
	w, err := testdb.NewWriter(t.Context(), v.app(t), load)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := w.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

const (
	pour = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d)
		INSERT INTO tall SELECT randomblob(20000) FROM n`
	makeTall = "CREATE TABLE IF NOT EXISTS tall (b)"
)

// grow adds n rows of 20 KB that do not compress.
func (v *victim) grow(t *testing.T, n int) {
	t.Helper()
	v.sql(t, makeTall, fmt.Sprintf(pour, n))
}

// filler is how much of a new victim never changes: a full copy would show.
const filler = 4 << 20

// lay makes the database with its filler.
func (v *victim) lay(t *testing.T, o testdb.Options) {
	t.Helper()
	v.conn = testdb.Create(t, v.path, o)
	testdb.Exec(t, v.conn, "PRAGMA synchronous=OFF", makeTall, fmt.Sprintf(pour, filler/20000), "PRAGMA synchronous=NORMAL")
	v.commit(t, 20)
}

// settled waits until what is restored equals the database. Nobody may write
// meanwhile.
func (v *victim) settled(t *testing.T) {
	t.Helper()
	v.awaitRestored(t, v.path)
}

// awaitRestored waits until what is restored equals another database.
func (v *victim) awaitRestored(t *testing.T, want string, before ...func()) {
	t.Helper()
	dir := t.TempDir()
	var last error
	seen := -1
	rig.Eventually(t, rig.Limit, func(ctx context.Context) error {
		for _, do := range before {
			do()
		}
		files := len(v.place.Files(t))
		if files == seen { // nothing new can be restored
			return last
		}
		seen = files
		out := filepath.Join(dir, fmt.Sprintf("restored-%d.db", files))
		if e := rig.TryRestore(t, v.place, out); e.Code != 0 {
			last = fmt.Errorf("restore exited with %d: %s", e.Code, e.Output)
		} else {
			last = errors.Join(testdb.Same(ctx, out, want), os.Remove(out))
		}
		return last
	})
}

// stored returns the files of the replica by name and level.
func (v *victim) stored(t *testing.T) map[string]rig.File {
	t.Helper()
	files := map[string]rig.File{}
	for _, f := range v.place.Files(t) {
		files[fmt.Sprintf("%d/%s", f.Level, f.Name())] = f
	}
	return files
}

// put copies a file over another, which stays the same file if it is there.
func put(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_TRUNC|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
}

// dice returns the source of chance of a test, and logs its seed.
func dice(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv(seedEnv); s != "" {
		if _, err := fmt.Sscan(s, &seed); err != nil {
			t.Fatalf("%s=%s: %v", seedEnv, s, err)
		}
	}
	t.Logf("chance: %s=%d", seedEnv, seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// seedEnv names the seed of chance in the torture tests and the soak.
const seedEnv = "TIDEMARK_SEED"
