//go:build e2e

package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestApplicationKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, db := live(t, testdb.Options{})
	if err := db.Close(); err != nil { // the last connection to close is the killed one's
		t.Fatal(err)
	}
	sidecar := rig.Replicate(t, path, p)
	for range 15 {
		w := testdb.StartWriter(t, path, testdb.Load{Seed: 4, Payload: 300, Churn: 3, Body: 3000})
		rig.Pause(t, time.Duration(rand.IntN(200))*time.Millisecond)
		w.Kill(t)
	}
	testdb.StartWriter(t, path, modest(5)).Wait(t)
	stop(t, sidecar)
	restoresEqual(t, p, path)
}

func TestApplicationThatLocksTheDatabaseForItselfIsNotDisturbed(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, db := live(t, testdb.Options{})
	commit(t, db, 5)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	own := testdb.Open(t, path)
	testdb.Exec(t, own, "PRAGMA locking_mode=EXCLUSIVE", "BEGIN IMMEDIATE", "COMMIT")
	sidecar := rig.Replicate(t, path, p)
	commit(t, own, 50)
	rig.Pause(t, time.Second)
	commit(t, own, 50)
	if err := own.Close(); err != nil {
		t.Fatal(err)
	}
	awaitFile(t, p)
	testdb.StartWriter(t, path, modest(5)).Wait(t)
	stop(t, sidecar)
	restoresEqual(t, p, path)
}

func TestDatabaseDeletedAndMadeAnewWhileTheSidecarRuns(t *testing.T) {
	t.Parallel()
	f := startForeign(t)
	wipeButState(t, f.path)
	testdb.StartWriter(t, f.path, testdb.Load{Seed: 31, Commits: 60, Payload: 200, Churn: 1, Body: 500}).Wait(t)
	f.end(t)
}

// wipeButState deletes a database as an application does.
func wipeButState(t *testing.T, path string) {
	t.Helper()
	remove(t, path, path+"-wal", path+"-shm", path+"-journal")
}

func TestPathsThatAreHardToQuote(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"with space.db", "per%20cent.db", "que?stion.db", "ha#sh.db", "quo'te.db", "naïve é.db", "no-extension", "a&b=c;d.db"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "dir "+name, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			bucket := filepath.Join(t.TempDir(), "bucket of "+name)
			db := testdb.Create(t, path, testdb.Options{})
			commit(t, db, 10)
			p := rig.Place{URL: (&url.URL{Scheme: "file", Path: bucket}).String(), Dir: bucket}
			rig.ReplicateOnce(t, path, p)
			commit(t, db, 10)
			sidecar := rig.Replicate(t, path, p)
			commit(t, db, 3)
			stop(t, sidecar)
			out := filepath.Join(t.TempDir(), name)
			if e := rig.TryRestore(t, p, out); e.Code != 0 {
				t.Fatalf("restore exited with %d", e.Code)
			}
			onlyIn(t, out, name)
			testdb.SameDatabase(t, out, path)
		})
	}
}

func TestDatabaseBehindASymbolicLink(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, db := live(t, testdb.Options{})
	commit(t, db, 10)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	sidecar := rig.Replicate(t, link, p)
	awaitFile(t, p)
	testdb.StartWriter(t, path, modest(50)).Wait(t)
	testdb.StartWriter(t, link, modest(50)).Wait(t)
	stop(t, sidecar)
	restoresEqual(t, p, path)
}

func TestSeveralDatabasesInOneBucket(t *testing.T) {
	t.Parallel()
	server := rig.S3(t)
	var dbs strings.Builder
	paths := map[string]string{}
	for _, prefix := range []string{"lake/db", "lake/db2", "lake/db/inner", "lake/d"} {
		path, db := live(t, testdb.Options{})
		commit(t, db, int64(10+len(paths)))
		paths[prefix] = path
		fmt.Fprintf(&dbs, "  - path: %s\n    replica:\n      url: %q\n", path, rig.At(t, server.Server, prefix).URL)
	}
	conf := config(t, "dbs:\n%s", dbs.String())
	sidecar := rig.Tidemark(t, server.Env, "replicate", "-config", conf)
	for _, path := range paths {
		testdb.StartWriter(t, path, modest(20)).Wait(t)
	}
	stop(t, sidecar)
	for prefix, path := range paths {
		restoresEqual(t, rig.At(t, server.Server, prefix), path)
		out := filepath.Join(t.TempDir(), "restored.db")
		e := rig.Tidemark(t, server.Env, "restore", "-config", conf, "-o", out, path).Wait(t, rig.Limit)
		if e.Code != 0 {
			t.Fatalf("restore by the configuration exited with %d", e.Code)
		}
		testdb.SameDatabase(t, out, path)
	}
}
