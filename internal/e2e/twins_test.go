//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestSecondSidecarOfTheSameDatabaseStaysQuiet(t *testing.T) {
	t.Parallel()
	p, other := rig.Directory(t), rig.Directory(t)
	path, db := live(t, testdb.Options{})
	first := rig.Replicate(t, path, p)
	awaitFile(t, p)
	second := rig.Replicate(t, path, other)
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if out := second.Output(); !strings.Contains(out, "replicated by another process") {
			return fmt.Errorf("the second sidecar does not say that there is a first one: %s", out)
		}
		return nil
	})
	commit(t, db, 20)
	stop(t, first)
	restoresEqual(t, p, path)
	awaitFile(t, other)
	stop(t, second)
	restoresEqual(t, other, path)
}

func TestTwoDatabasesOnOnePrefixNeverMix(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		a, dbA := live(t, testdb.Options{})
		b, dbB := live(t, testdb.Options{})
		testdb.Exec(t, dbA, "CREATE TABLE still (b)", "INSERT INTO still VALUES (randomblob(500000))")
		commit(t, dbA, 10)
		sidecarA := rig.Replicate(t, a, p)
		awaitFile(t, p)
		before := p.Newest(t)
		// B begins where A is, and then both go on.
		load := testdb.Load{Seed: 77, Commits: 90, Payload: 300, Churn: 3, Body: 900}
		testdb.StartWriter(t, b, load).Wait(t)
		sidecarB := rig.Replicate(t, b, p)
		awaitTXID(t, p, before+1)
		commit(t, dbA, 20)
		load.Commits = 5
		testdb.StartWriter(t, b, load).Wait(t)
		commit(t, dbA, 1)
		rig.Eventually(t, rig.Limit, func(context.Context) error {
			if sidecarA.Alive() && sidecarB.Alive() {
				return errors.New("both sidecars still run")
			}
			return nil
		})
		for _, s := range []*rig.Process{sidecarA, sidecarB} {
			if e := s.Stop(t, rig.Limit); e.Code > 0 && !strings.Contains(e.Output, "another process writes") {
				t.Errorf("a sidecar exited with %d without saying that it is fenced", e.Code)
			}
		}
		restored := rig.Restore(t, p)
		link, err := testdb.Verify(t.Context(), restored)
		if err != nil {
			t.Fatal(err)
		}
		errA, errB := testdb.CheckPrefix(t.Context(), link, a), testdb.CheckPrefix(t.Context(), link, b)
		if (errA == nil) == (errB == nil) {
			t.Errorf("restored %v, want a state of one database: %v, %v", link, errA, errB)
		}
		if err := dbB.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestDamagedObjectIsAnErrorThatNamesItsKey(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, db := live(t, testdb.Options{})
		sidecar := rig.Replicate(t, path, p)
		awaitFile(t, p)
		for range 5 {
			before := p.Newest(t)
			commit(t, db, 2)
			awaitTXID(t, p, before+1)
		}
		stop(t, sidecar)
		files := p.Level(t, 0)
		victim := files[len(files)/2]
		key := victim.Path()
		whole, err := os.ReadFile(key)
		if err != nil {
			t.Fatal(err)
		}
		flipped := append([]byte{}, whole...)
		flipped[len(flipped)/2] ^= 0x10
		for name, content := range map[string][]byte{
			"empty": {}, "cut to 40 bytes": whole[:40], "cut": whole[:len(whole)-8], "flipped": flipped,
		} {
			if err := os.WriteFile(key, content, 0o600); err != nil {
				t.Fatal(err)
			}
			out := t.TempDir() + "/restored.db"
			e := rig.TryRestore(t, p, out)
			if e.Code != 1 || !strings.Contains(e.Output, victim.Name()) {
				t.Errorf("%s: restore exited with %d and did not name %s: %s", name, e.Code, victim.Name(), e.Output)
			}
			onlyIn(t, out)
		}
		if err := os.WriteFile(key, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		restoresEqual(t, p, path)
	})
}
