//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestAPrimaryThatIsCutOffStopsItsApplicationInTime(t *testing.T) {
	t.Parallel()
	server := testbucket.Gateway(t)
	b := newPeer(t, "b", rig.At(t, server, "lake/db"), "")
	a := newPeer(t, "a", rig.At(t, server, "lake/db"), "")
	proxy := testbucket.NewProxy(t, a.place.Meter.Endpoint())
	a.place = a.place.Via(proxy.Endpoint())
	stubborn := script(t, "trap '' TERM\n"+writer(t, a.live(), testdb.Load{Rate: 100, Payload: 50})+" &\nwait; wait; sleep 100\n")
	a.more = fmt.Sprintf("exec: %q\naddr: 127.0.0.1:0\n", stubborn)
	a.create(t, 10)
	a.start(t)
	a.await(t, "primary")
	b.start(t)
	b.awaitCopy(t, a)
	a.mustSync(t, "live.db")
	proxy.Drop()
	cut := time.Now()
	// By the deadline and the time to stop, the application is gone.
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if s, err := a.status(t); err != nil || s.Lease.Role == "primary" {
			return fmt.Errorf("still primary: %w", err)
		}
		return nil
	})
	t.Logf("cut off to not primary: %v", time.Since(cut).Round(time.Millisecond))
	a.await(t, "cut off")
	if text := awaitReady(t, baseURL(t, a.proc), http.StatusServiceUnavailable); !strings.Contains(text, "lease since") {
		t.Errorf("/readyz of one that is cut off says %q", text)
	}
	b.await(t, "primary")
	dead, err := newest(a.live())
	if err != nil {
		t.Fatal(err)
	}
	rig.Pause(t, time.Second)
	if n, err := newest(a.live()); err != nil || n != dead {
		t.Errorf("the application went on after another node is primary: %d commits, then %d (%v)", dead, n, err)
	}
	b.write(t, "live.db", 5)
	proxy.Heal()
	a.awaitCopy(t, b)
	if s := a.await(t, "follower"); s.Databases[0].Quarantined == 0 {
		t.Errorf("nothing was set aside: %+v", s)
	}
	testdb.SameDatabase(t, a.live(), b.live())
	b.isLast(t)
}

func TestAFollowerKeepsLocalWritersOut(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"lock", "chmod"} {
		a, b := pair(t, rig.Directory(t), "fence-local: "+way+"\n")
		app := testdb.Open(t, a.live()) // has it open in WAL mode
		commit(t, app, 3)
		if e := a.order(t, "step-down", "-to", "b"); e.Code != 0 {
			t.Fatalf("step-down ended with %d: %s", e.Code, e.Output)
		}
		b.await(t, "primary")
		if way == "lock" {
			rig.Eventually(t, rig.Limit, func(ctx context.Context) error {
				_, err := app.ExecContext(ctx, "PRAGMA user_version = 7")
				if err == nil {
					return errors.New("a local writer is let in")
				}
				if !testdb.Busy(err) {
					t.Fatal(err)
				}
				return nil
			})
			testdb.Number(t, app, "SELECT count(*) FROM sqlite_schema") // readers go on
		}
		if err := app.Close(); err != nil {
			t.Fatal(err)
		}
		b.write(t, "live.db", 5)
		a.awaitCopy(t, b)
		info, err := os.Stat(a.live())
		if err != nil {
			t.Fatal(err)
		}
		if writable := info.Mode().Perm()&0o222 != 0; writable != (way == "lock") {
			t.Errorf("%s: the copy has mode %v", way, info.Mode())
		}
		if e := a.order(t, "promote"); e.Code != 0 {
			t.Fatalf("promote ended with %d: %s", e.Code, e.Output)
		}
		b.await(t, "follower")
		a.write(t, "live.db", 5) // it may write again
		a.mustSync(t, "live.db")
		a.isLast(t)
	}
}

func TestFilesThatWereConfirmedAndAreMissingStopThePromotion(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	a, b := pair(t, p, "")
	a.write(t, "live.db", 5)
	a.mustSync(t, "live.db")
	stop(t, b.proc)
	a.write(t, "live.db", 5)
	a.mustSync(t, "live.db")
	a.proc.Kill(t) // the renewal that confirmed the commit tells of it
	level := p.Level(t, 0)
	remove(t, level[len(level)-1].Path())
	b.start(t)
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if !strings.Contains(b.proc.Output(), "accept-loss") {
			return errors.New("nothing was said of the file that is missing")
		}
		return nil
	})
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		s, err := b.status(t)
		if err == nil && (s.Lease.Role == "primary" || !strings.Contains(s.Databases[0].Error, "accept-loss")) {
			err = fmt.Errorf("its status is %+v", s)
		}
		return err
	})
	if e := b.order(t, "promote", "-timeout", "3s"); e.Code == 0 || !strings.Contains(e.Output, "accept-loss") {
		t.Errorf("promote ended with %d: %s", e.Code, e.Output)
	}
	if e := b.order(t, "promote", "-accept-loss"); e.Code != 0 {
		t.Fatalf("promote -accept-loss ended with %d: %s", e.Code, e.Output)
	}
	b.write(t, "live.db", 5)
	b.mustSync(t, "live.db")
	b.isLast(t)
}

func TestWhatAnApplicationCommitsBesideASidecarThatStandsStillIsSetAside(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	a, b := newPeer(t, "a", p, ""), newPeer(t, "b", p, "")
	a.busyChild(t)
	a.create(t, 10)
	a.start(t)
	a.await(t, "primary")
	b.start(t)
	b.awaitCopy(t, a)
	a.proc.Signal(t, syscall.SIGSTOP)
	b.await(t, "primary")
	b.write(t, "live.db", 5)
	a.proc.Signal(t, syscall.SIGCONT)
	a.awaitCopy(t, b)
	if s := a.await(t, "follower"); s.Databases[0].Quarantined == 0 {
		t.Errorf("nothing was set aside: %+v", s)
	}
	testdb.SameDatabase(t, a.live(), b.live())
	b.isLast(t)
}

func TestAnApplicationThatStaysOpenIsServedAgainWhenItsNodeIsThePrimaryAgain(t *testing.T) {
	t.Parallel()
	a := newPeer(t, "a", rig.S3(t), "")
	a.create(t, 10)
	a.start(t)
	a.await(t, "primary")
	app := testdb.Open(t, a.live())
	commit(t, app, 3)
	if e := a.order(t, "step-down"); e.Code != 0 {
		t.Fatalf("step-down ended with %d: %s", e.Code, e.Output)
	}
	if e := a.order(t, "promote"); e.Code != 0 { // nobody else came
		t.Fatalf("promote ended with %d: %s", e.Code, e.Output)
	}
	commit(t, app, 3)
	a.mustSync(t, "live.db")
	if s := a.await(t, "primary"); s.Lease.Generation != 2 || s.Databases[0].Quarantined != 0 {
		t.Errorf("got %+v", s)
	}
	a.isLast(t)
}
