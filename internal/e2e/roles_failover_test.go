//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestAFollowerTakesOverFromAPrimaryThatWasKilled(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		a, b := pair(t, p, "")
		a.write(t, "live.db", 15)
		a.mustSync(t, "live.db")
		kept := p.Newest(t)
		begin := time.Now()
		a.proc.Kill(t)
		s := b.await(t, "primary")
		took := time.Since(begin)
		t.Logf("crash to the next primary: %v; aim: %v and 2 s", took.Round(time.Millisecond), failover)
		if s.Lease.Generation != 2 || s.Databases[0].Captured.TXID < kept {
			t.Errorf("the new primary says %+v, want TXID %d or more", s, kept)
		}
		testdb.SameDatabase(t, b.live(), a.live())
		b.write(t, "live.db", 15)
		b.mustSync(t, "live.db")
		a.start(t) // comes back, and follows
		a.awaitCopy(t, b)
		testdb.SameDatabase(t, a.live(), b.live())
		b.isLast(t)
	})
}

func TestSIGTERMHandsOverAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		a, b := pair(t, p, "")
		a.write(t, "live.db", 15)
		begin := time.Now()
		stop(t, a.proc)
		b.await(t, "primary")
		took := time.Since(begin)
		t.Logf("SIGTERM to the next primary: %v", took.Round(time.Millisecond))
		if out := a.proc.Output(); !strings.Contains(out, "lease released") {
			t.Errorf("the lease was not released:\n%s", out)
		}
		b.allUploaded(t) // without a write
		testdb.SameDatabase(t, b.live(), a.live())
		b.write(t, "live.db", 5)
		b.mustSync(t, "live.db")
		b.isLast(t)
	})
}

func TestStepDownAndPromoteMoveTheRole(t *testing.T) {
	t.Parallel()
	a, b := pair(t, rig.S3(t), "")
	if e := b.order(t, "step-down"); e.Code != 4 {
		t.Errorf("step-down of a follower ended with %d: %s", e.Code, e.Output)
	}
	if e := a.order(t, "step-down", "-to", "b"); e.Code != 0 {
		t.Fatalf("step-down ended with %d: %s", e.Code, e.Output)
	}
	b.await(t, "primary")
	b.write(t, "live.db", 5)
	a.awaitCopy(t, b)
	begin := time.Now()
	if e := a.order(t, "promote"); e.Code != 0 {
		t.Fatalf("promote ended with %d: %s", e.Code, e.Output)
	}
	t.Logf("promote: %v", time.Since(begin).Round(time.Millisecond))
	a.await(t, "primary")
	b.await(t, "follower")
	a.write(t, "live.db", 5)
	a.mustSync(t, "live.db")
	b.awaitCopy(t, a)
	if e := b.order(t, "sync", b.live()); e.Code == 0 {
		t.Errorf("a follower was synced: %s", e.Output)
	}
	testdb.SameDatabase(t, b.live(), a.live())
	a.isLast(t)
}

func TestAPrimaryThatStoodStillIsFencedAndSetsItsCommitsAside(t *testing.T) {
	t.Parallel()
	a, b := pair(t, rig.S3(t), "")
	a.proc.Signal(t, syscall.SIGSTOP)
	a.write(t, "live.db", 7) // nobody will ever upload them
	b.await(t, "primary")
	b.write(t, "live.db", 11)
	b.mustSync(t, "live.db")
	a.proc.Signal(t, syscall.SIGCONT)
	a.await(t, "follower")
	a.awaitCopy(t, b)
	if s := a.await(t, "follower"); s.Databases[0].Quarantined == 0 {
		t.Errorf("nothing was set aside: %+v", s)
	}
	testdb.SameDatabase(t, a.live(), b.live())
	b.isLast(t)
}

func TestAnEmptyNodeRestoresBeforeItServes(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	path, db := live(t, testdb.Options{})
	commit(t, db, 30)
	rig.ReplicateOnce(t, path, p)
	a := newPeer(t, "a", p, "")
	a.start(t)
	a.await(t, "primary")
	a.mustSync(t, "live.db")
	testdb.SameDatabase(t, a.live(), path)
	a.write(t, "live.db", 5)
	a.mustSync(t, "live.db")
	a.isLast(t)
}

func TestANodeThatIsAheadUploadsWhatOnlyItHas(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	a := newPeer(t, "a", p, "")
	db := testdb.Create(t, a.live(), testdb.Options{})
	commit(t, db, 20)
	a.start(t)
	a.await(t, "primary")
	a.mustSync(t, "live.db")
	a.proc.Kill(t)
	commit(t, db, 25) // while nobody looks
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	a.start(t)
	a.await(t, "primary")
	a.mustSync(t, "live.db")
	s := a.await(t, "primary")
	if s.Databases[0].Quarantined != 0 {
		t.Errorf("commits were set aside: %+v", s)
	}
	if l := testdb.ChainPrefix(t, a.live(), a.live()); l.N != 45 {
		t.Errorf("the database holds %d commits, want 45", l.N)
	}
	a.isLast(t)
}

func TestWhatSomebodyWritesToACopyIsSetAside(t *testing.T) {
	t.Parallel()
	a, b := pair(t, rig.Directory(t), "fence-local: off\n")
	app := testdb.Open(t, b.live())
	testdb.Exec(t, app, "CREATE TABLE intruder (x)", "INSERT INTO intruder VALUES (1)")
	if err := app.Close(); err != nil {
		t.Fatal(err)
	}
	a.write(t, "live.db", 7)
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		s, err := b.status(t)
		if err == nil && s.Databases[0].Quarantined == 0 {
			err = fmt.Errorf("nothing was set aside: %+v", s)
		}
		return err
	})
	b.awaitCopy(t, a)
	testdb.SameDatabase(t, b.live(), a.live())
	entries, err := os.ReadDir(filepath.Join(stateDir(b.live()), "quarantine"))
	if err != nil || len(entries) != 1 {
		t.Fatalf("the quarantine holds %v, %v", entries, err)
	}
	kept := testdb.Open(t, filepath.Join(stateDir(b.live()), "quarantine", entries[0].Name(), "database.db"))
	if n := testdb.Number(t, kept, "SELECT count(*) FROM intruder"); n != 1 {
		t.Errorf("what was set aside has %d rows of the intruder", n)
	}
	a.isLast(t)
}
