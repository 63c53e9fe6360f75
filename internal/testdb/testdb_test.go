package testdb_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestMain(m *testing.M) {
	testdb.RunWriter()
	os.Exit(m.Run())
}

func load(n int64) testdb.Load {
	return testdb.Load{Seed: 7, Commits: n, Payload: 100, Churn: 3, Body: 900}
}

func filled(t *testing.T, n int64) (string, testdb.Link) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "live.db")
	db := testdb.Create(t, path, testdb.Options{})
	w, err := testdb.NewWriter(t.Context(), db, load(n))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return path, w.Tip()
}

func TestChainOfTheWriterIsUnbrokenAndContinues(t *testing.T) {
	path, tip := filled(t, 300)
	got, err := testdb.Verify(t.Context(), path)
	if err != nil || got != tip || got.N != 300 {
		t.Fatalf("chain at %v (%v), want %v", got, err, tip)
	}
	sum := testdb.StartWriter(t, path, load(50)).Wait(t)
	if sum.Commits != 50 || sum.Newest != 350 {
		t.Fatalf("another process wrote %+v, want commits 301 to 350", sum)
	}
	if got := testdb.ChainPrefix(t, path, path); got.N != 350 {
		t.Fatalf("chain at %v, want commit 350", got)
	}
}

func TestWriterProcessStopsWhenTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "live.db")
	w := testdb.StartWriter(t, path, testdb.Load{Rate: 1000, Payload: 10})
	sum := w.Stop(t)
	if got := testdb.ChainPrefix(t, path, path); got.N != sum.Newest {
		t.Fatalf("chain at %v, writer says %d", got, sum.Newest)
	}
}

func TestKilledWriterLeavesAnUnbrokenChain(t *testing.T) {
	path, _ := filled(t, 5)
	w := testdb.StartWriter(t, path, testdb.Load{Payload: 100, Churn: 2, Body: 300})
	w.Kill(t)
	n := testdb.ChainPrefix(t, path, path).N
	if sum := testdb.StartWriter(t, path, load(5)).Wait(t); sum.Newest != n+5 {
		t.Fatalf("the next writer went on to %d, want %d", sum.Newest, n+5)
	}
}

func TestDamageToChainOrChurnIsFound(t *testing.T) {
	for name, query := range map[string]string{
		"a commit is missing":        "DELETE FROM chain WHERE n = 20",
		"a payload differs":          "UPDATE chain SET payload = x'00' WHERE n = 20",
		"churn of the end is missed": "DELETE FROM churn WHERE id = (SELECT max(id) FROM churn)",
		"churn has a stale row":      "UPDATE churn SET body = x'01' WHERE id = (SELECT min(id) FROM churn)",
	} {
		t.Run(name, func(t *testing.T) {
			path, _ := filled(t, 60)
			testdb.Exec(t, testdb.Open(t, path), query)
			if _, err := testdb.Verify(t.Context(), path); !errors.Is(err, testdb.ErrBroken) {
				t.Fatalf("got %v, want %v", err, testdb.ErrBroken)
			}
		})
	}
}

func TestSameSeesEveryDifference(t *testing.T) {
	for name, query := range map[string]string{
		"row":        "UPDATE other SET v = 2",
		"type":       "UPDATE other SET v = '1'",
		"schema":     "CREATE INDEX i ON other (v)",
		"page count": "INSERT INTO other VALUES (zeroblob(90000)); DELETE FROM other WHERE typeof(v) = 'blob'",
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := filled(t, 5)
			testdb.Exec(t, testdb.Open(t, a), "CREATE TABLE other (v)", "INSERT INTO other VALUES (1)")
			b := a + "-copy"
			testdb.Exec(t, testdb.Open(t, a), "VACUUM INTO '"+b+"'")
			testdb.SameDatabase(t, a, b)
			testdb.Exec(t, testdb.Open(t, b), query)
			if err := testdb.Same(t.Context(), a, b); err == nil {
				t.Fatal("no difference was seen")
			}
		})
	}
}

func TestStateOfAnotherLineIsNoPrefix(t *testing.T) {
	a, tip := filled(t, 40)
	b, _ := filled(t, 30)
	if err := testdb.CheckPrefix(context.Background(), tip, b); err == nil {
		t.Fatal("commit 40 was found in a database of 30")
	}
	testdb.ChainPrefix(t, b, a)
}

func TestPagesDifferByNumber(t *testing.T) {
	a, _ := filled(t, 5)
	testdb.Checkpoint(t, a)
	b := a + "-copy"
	raw, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	raw[4096*2+5]++
	if err := os.WriteFile(b, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := testdb.ComparePages(a, b, 4096); err == nil || !strings.HasSuffix(err.Error(), "differ in page 3") {
		t.Fatalf("got %v, want page 3", err)
	}
	testdb.SamePages(t, a, a, 4096)
}
