//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// flip changes one bit of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDamageOfTheReplicaIsFoundAndSteppedOver(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, db := live(t, testdb.Options{})
		sidecar := sidecarWith(t, path, p, "verify-interval: 1s\nlevels: [{interval: 1h}]\n")
		awaitFile(t, p)
		for range 6 {
			commit(t, db, 1)
			if e := ask(t, path, "sync", "-wait"); e.Code != 0 {
				t.Fatalf("sync exited with %d: %s", e.Code, e.Output)
			}
		}
		says := func(want string) func(context.Context) error {
			return func(context.Context) error {
				if e := ask(t, path, "status", "-json"); !strings.Contains(e.Output, want) {
					return fmt.Errorf("status says %s, want %s", e.Output, want)
				}
				return nil
			}
		}
		rig.Eventually(t, rig.Limit, says(`"whole_at"`))
		if e := ask(t, path, "status"); !strings.Contains(e.Output, " replicating ") {
			t.Errorf("status says %s", e.Output)
		}
		sidecar.Kill(t) // and the copies that it has, with which it would mend the file
		sidecar = sidecarWith(t, path, p, "verify-interval: 1s\nlevels: [{interval: 1h}]\n")
		raw := p.Level(t, 0)
		bad := raw[len(raw)-2]
		flip(t, bad.Path())
		rig.Eventually(t, rig.Limit, says(`"error": "damaged on the replica`))
		rig.Eventually(t, rig.Limit, func(context.Context) error {
			if s := p.Level(t, 9); s[len(s)-1].Max < bad.Max {
				return fmt.Errorf("no snapshot stands in for %s", bad.Name())
			}
			return nil
		})
		rig.Eventually(t, rig.Limit, says(`"state": "replicating"`))
		commit(t, db, 2)
		stop(t, sidecar)
		restoresEqual(t, p, path)
		testdb.SameDatabase(t, rig.LitestreamRestore(t, p), path)
	})
}

// rotting makes a database with so many MiB of zeros in a directory in memory,
// which nobody has open, and returns what flips a bit in the middle of it
// behind everybody's back.
func rotting(t *testing.T, dir, name string, mib int) (path string, flip func()) {
	t.Helper()
	path = filepath.Join(dir, name)
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF", "CREATE TABLE zeros (b)")
	for range mib {
		testdb.Exec(t, db, "INSERT INTO zeros VALUES (zeroblob(1048576))")
	}
	testdb.Exec(t, db, "PRAGMA journal_mode=WAL")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, testdb.Rot(t, path, info.Size()/2+99)
}

// awaitOutput waits until a sidecar has printed a line with all the texts.
func awaitOutput(t *testing.T, sidecar *rig.Process, texts ...string) {
	t.Helper()
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		for line := range strings.Lines(sidecar.Output()) {
			if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
				return nil
			}
		}
		return fmt.Errorf("it printed no line with %q: %s", texts, sidecar.Output())
	})
}

func TestAPageThatRotsInALargeDatabaseIsFoundAndMended(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, flip := rotting(t, testdb.MemoryDir(t), "live.db", 300)
	sidecar := sidecarWith(t, path, p, "verify-interval: 1s\n")
	awaitFile(t, p)
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if e := ask(t, path, "status", "-json"); !strings.Contains(e.Output, `"database_whole_at"`) {
			return fmt.Errorf("it was not compared: %s", e.Output)
		}
		return nil
	})
	w := testdb.StartWriter(t, path, testdb.Load{Seed: 3, Rate: 20, Payload: 100, Churn: 2, Body: 700})
	before := p.Newest(t)
	flip()
	awaitOutput(t, sidecar, "level=ERROR", "not as it must be", "page ", path)
	awaitOutput(t, sidecar, "what was read again is right")
	w.Stop(t)
	if e := ask(t, path, "status"); !strings.Contains(e.Output, " replicating ") {
		t.Errorf("status says %s", e.Output)
	}
	if n := p.Uploaded(t); p.Newest(t) == before || n > 20<<20 {
		t.Errorf("the newest TXID is %d, it was %d; %d bytes are stored", p.Newest(t), before, n)
	}
	if peak := stop(t, sidecar).Peak; peak > 120<<20 {
		t.Errorf("the sidecar needed %d bytes", peak)
	}
	testdb.SamePages(t, rig.Restore(t, p), checkpointed(t, path), 4096)
}

// checkpointed copies the WAL of a database that nobody has open into it.
func checkpointed(t *testing.T, path string) string {
	t.Helper()
	testdb.Checkpoint(t, path)
	return path
}

// opened returns the databases below a directory that a sidecar has open.
func opened(t *testing.T, sidecar *rig.Process, dir string) (paths []string) {
	t.Helper()
	fds := fmt.Sprintf("/proc/%d/fd", sidecar.Pid())
	files, err := os.ReadDir(fds)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		path, err := os.Readlink(filepath.Join(fds, f.Name()))
		if err == nil && filepath.Dir(path) == dir && strings.HasSuffix(path, ".db") {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func TestAPageThatRotsInAParkedDatabaseIsFoundAndMended(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	dir := testdb.MemoryDir(t)
	flips := map[string]func(){}
	for i := range 6 {
		name := fmt.Sprintf("tenant-%d.db", i)
		_, flips[name] = rotting(t, dir, name, 2)
	}
	conf := config(t, "max-open-databases: 2\nsocket: off\nverify-interval: 2s\ndbs:\n- dir: %q\n  pattern: '*.db'\n  replica: {url: %q}\n", dir, p.URL)
	sidecar := rig.Tidemark(t, p.Env, "replicate", "-config", conf)
	at := func(name string) rig.Place {
		return rig.Place{URL: p.URL + "/" + name, Dir: filepath.Join(p.Dir, name)}
	}
	for name := range flips {
		awaitFile(t, at(name))
	}
	few := func(context.Context) error {
		if open := opened(t, sidecar, dir); len(open) > 2 {
			return fmt.Errorf("%q are open", open)
		}
		return nil
	}
	rig.Eventually(t, rig.Limit, few)
	name := "" // of one that is parked
	for i := range 6 {
		if n := fmt.Sprintf("tenant-%d.db", i); !slices.Contains(opened(t, sidecar, dir), filepath.Join(dir, n)) {
			name = n
		}
	}
	bad := filepath.Join(dir, name)
	flips[name]()
	awaitOutput(t, sidecar, "level=ERROR", "not as it must be", "page ", bad)
	awaitTXID(t, at(name), 2)
	awaitOutput(t, sidecar, "what was read again is right", bad)
	rig.Eventually(t, rig.Limit, few)
	stop(t, sidecar)
	for other := range flips {
		if n := at(other).Newest(t); n > 1 && other != name {
			t.Errorf("%s has TXID %d, but nothing happened to it", other, n)
		}
		testdb.SamePages(t, rig.Restore(t, at(other)), checkpointed(t, filepath.Join(dir, other)), 4096)
	}
}
