//go:build e2e

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// onlyIn fails the test unless the folder of path holds just the names.
func onlyIn(t *testing.T, path string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, e := range entries {
		got[e.Name()] = true
	}
	for _, n := range names {
		if !got[n] {
			t.Errorf("%s is missing", n)
		}
		delete(got, n)
	}
	for n := range got {
		t.Errorf("%s was left behind", n)
	}
}

func TestExitCodesOfRestoreSayWhatIsProven(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	path, db := live(t, testdb.Options{})
	commit(t, db, 10)
	out := filepath.Join(t.TempDir(), "restored.db")
	if e := rig.TryRestore(t, p, out); e.Code != 3 {
		t.Errorf("exit code %d of an empty bucket, want 3", e.Code)
	}
	if e := rig.TryRestore(t, p, out, "-if-replica-exists"); e.Code != 0 {
		t.Errorf("exit code %d of an empty bucket with -if-replica-exists, want 0", e.Code)
	}
	rig.ReplicateOnce(t, path, p)

	stranger := p
	stranger.Env = append(append([]string{}, p.Env...), "AWS_SECRET_ACCESS_KEY=wrong")
	if e := rig.TryRestore(t, stranger, out, "-if-replica-exists"); e.Code != 1 {
		t.Errorf("exit code %d with wrong credentials, want 1", e.Code)
	}
	p.Server.Stop()
	if e := rig.TryRestore(t, p, out, "-if-replica-exists"); e.Code != 1 {
		t.Errorf("exit code %d of an unreachable bucket, want 1", e.Code)
	}
	p.Server.Start()
	onlyIn(t, out)
	restoresEqual(t, p, path)
}

func TestRestoreNeverTouchesWhatIsThere(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, db := live(t, testdb.Options{})
	commit(t, db, 30)
	rig.ReplicateOnce(t, path, p)
	for _, name := range []string{"", "-wal", "-shm", "-journal"} {
		out := filepath.Join(t.TempDir(), "restored.db")
		if err := os.WriteFile(out+name, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		if e := rig.TryRestore(t, p, out); e.Code != 1 {
			t.Errorf("exit code %d beside %q, want 1", e.Code, filepath.Base(out+name))
		}
		if b, err := os.ReadFile(out + name); err != nil || string(b) != "precious" {
			t.Errorf("%s holds %q now (%v)", out+name, b, err)
		}
		onlyIn(t, out, filepath.Base(out+name))
		if e := rig.TryRestore(t, p, out, "-force"); e.Code != 0 {
			t.Fatalf("exit code %d with -force", e.Code)
		}
		onlyIn(t, out, filepath.Base(out))
		testdb.SameDatabase(t, out, path)
	}
	out := filepath.Join(t.TempDir(), "restored.db")
	if err := os.WriteFile(out, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if e := rig.TryRestore(t, p, out, "-if-db-not-exists"); e.Code != 0 {
		t.Errorf("exit code %d of -if-db-not-exists with a database, want 0", e.Code)
	}
	onlyIn(t, out, filepath.Base(out))
}

func TestRestoreCutInTheMiddleLeavesNothingAndThenWorks(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	path, db := live(t, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE ballast (b)", `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 4)
		INSERT INTO ballast SELECT randomblob(1<<20) FROM n`)
	commit(t, db, 30)
	rig.ReplicateOnce(t, path, p)
	proxy := testbucket.NewProxy(t, p.Meter.Endpoint())
	out := filepath.Join(t.TempDir(), "restored.db")
	for _, n := range []int64{0, 100} { // not even a listing comes through
		proxy.CutBodies(n)
		if e := rig.TryRestore(t, p.Via(proxy.Endpoint()), out); e.Code != 1 {
			t.Errorf("exit code %d with every body cut after %d bytes, want 1", e.Code, n)
		}
		onlyIn(t, out)
		proxy.Heal()
	}
	proxy.CutBodies(70_000) // pages come in pieces: it may get there, or not
	switch e := rig.TryRestore(t, p.Via(proxy.Endpoint()), out); e.Code {
	case 0:
		onlyIn(t, out, filepath.Base(out))
		testdb.SameDatabase(t, out, path)
		wipe(t, out)
	case 1:
		onlyIn(t, out)
	default:
		t.Errorf("exit code %d", e.Code)
	}
	proxy.Heal()
	if e := rig.TryRestore(t, p.Via(proxy.Endpoint()), out); e.Code != 0 {
		t.Fatalf("exit code %d", e.Code)
	}
	testdb.SameDatabase(t, out, path)
}

func TestRestoreOfATransactionThatIsNotThere(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, db := live(t, testdb.Options{})
	commit(t, db, 10)
	rig.ReplicateOnce(t, path, p)
	for _, txid := range []string{"999", "0000000000000fff", "-1", "zz"} {
		out := filepath.Join(t.TempDir(), "restored.db")
		if e := rig.TryRestore(t, p, out, "-txid", txid); e.Code <= 0 || e.Code == 3 || !strings.Contains(e.Output, "transaction") && !strings.Contains(e.Output, "-txid") {
			t.Errorf("restore of TXID %s exited with %d: %s", txid, e.Code, e.Output)
		}
		onlyIn(t, out)
	}
	restoresEqual(t, p, path)
}
