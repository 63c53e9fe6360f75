//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// busyChild is the configuration of an application that makes 200 commits/s.
func (p *peer) busyChild(t *testing.T) {
	t.Helper()
	p.more += fmt.Sprintf("exec: %q\n", writer(t, p.live(), testdb.Load{Seed: 7, Rate: 200, Payload: 60, Churn: 1, Body: 100}))
}

// newest is the number of commits in the chain of a database.
func newest(path string) (int64, error) {
	l, err := testdb.Verify(context.Background(), path)
	return l.N, err
}

func TestAHandOverUnderWritersLosesNoCommit(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		a, b := newPeer(t, "a", p, ""), newPeer(t, "b", p, "")
		a.busyChild(t)
		b.busyChild(t)
		a.create(t, 10)
		a.start(t)
		a.await(t, "primary")
		b.start(t)
		b.awaitCopy(t, a)
		nodes := []*peer{a, b}
		for i := range 3 {
			from, to := nodes[i%2], nodes[(i+1)%2]
			rig.Pause(t, time.Second)
			begin := time.Now()
			if e := from.order(t, "step-down", "-to", to.name); e.Code != 0 {
				t.Fatalf("step-down ended with %d: %s", e.Code, e.Output)
			}
			released := time.Now()
			made, err := newest(from.live())
			if err != nil {
				t.Fatal(err)
			}
			rig.Eventually(t, rig.Limit, func(context.Context) error {
				n, err := newest(to.live())
				if err == nil && n <= made {
					err = fmt.Errorf("%d commits on %s, %d were made before", n, to.name, made)
				}
				return err
			})
			t.Logf("hand-over at 200 commits/s: asked to released %v, released to the first commit of the next %v",
				released.Sub(begin).Round(time.Millisecond), time.Since(released).Round(time.Millisecond))
			testdb.ChainPrefix(t, from.live(), to.live()) // each commit of the one before is there
		}
		last := nodes[1]
		last.await(t, "primary")
		nodes[0].await(t, "follower")
		stop(t, nodes[0].proc)
		stop(t, last.proc)
		last.isLast(t)
		for _, n := range nodes {
			if strings.Contains(n.proc.Output(), "set aside") {
				t.Errorf("commits were set aside on %s", n.name)
			}
		}
	})
}

func TestAKilledPrimaryTakesItsApplicationAlong(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	a, b := newPeer(t, "a", p, ""), newPeer(t, "b", p, "")
	a.busyChild(t)
	b.busyChild(t)
	a.create(t, 10)
	a.start(t)
	a.await(t, "primary")
	b.start(t) // before there is much of a replica
	b.awaitCopy(t, a)
	a.mustSync(t, "live.db")
	confirmed := b.place.Newest(t)
	a.proc.Kill(t)
	s := b.await(t, "primary")
	if s.Databases[0].Captured.TXID <= confirmed {
		rig.Eventually(t, rig.Limit, func(context.Context) error {
			if n := p.Newest(t); n <= confirmed {
				return errors.New("the next application writes nothing")
			}
			return nil
		})
	}
	dead, err := newest(a.live())
	if err != nil {
		t.Fatal(err)
	}
	rig.Pause(t, time.Second)
	if n, err := newest(a.live()); err != nil || n != dead {
		t.Errorf("the application of the killed primary went on: %d commits, then %d (%v)", dead, n, err)
	}
	stop(t, b.proc)
	b.isLast(t)
}

// roleNote is what the role file holds.
type roleNote struct {
	Role       string `json:"role"`
	Generation uint64 `json:"generation"`
	Remaining  int64  `json:"remaining_ms"`
}

func (p *peer) roleFile(t *testing.T) (n roleNote) {
	t.Helper()
	text, err := os.ReadFile(p.path("role"))
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// primaryCode asks /primary.
func (p *peer) primaryCode(t *testing.T) (int, roleNote) {
	t.Helper()
	reply, err := http.Get(baseURL(t, p.proc) + "/primary")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	var n roleNote
	if err := json.NewDecoder(reply.Body).Decode(&n); err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, n
}

func TestApplicationsLearnTheRole(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	a, b := newPeer(t, "a", p, ""), newPeer(t, "b", p, "")
	for _, n := range []*peer{a, b} {
		hook := script(t, fmt.Sprintf("echo \"$1 $TIDEMARK_ROLE $TIDEMARK_GENERATION\" >> '%s'\n", n.path("hooks")))
		app := script(t, fmt.Sprintf("echo \"start $TIDEMARK_ROLE\" > '%[1]s.new'; mv '%[1]s.new' '%[1]s'; trap 'echo HUP >> %[1]s' HUP; "+
			"trap 'exit 0' TERM; while :; do sleep 0.05; done\n", n.path("app")))
		n.more = fmt.Sprintf("addr: 127.0.0.1:0\nrole-file: %s\non-promote: %s promote\non-demote: %s demote\nexec: %s\nexec-role: any\n",
			n.path("role"), hook, hook, app)
	}
	a.create(t, 10)
	a.start(t)
	a.await(t, "primary")
	b.start(t)
	b.awaitCopy(t, a)
	if code, n := a.primaryCode(t); code != http.StatusOK || n.Role != "primary" || n.Generation != 1 || n.Remaining <= 0 {
		t.Errorf("/primary of the primary: %d, %+v", code, n)
	}
	if code, n := b.primaryCode(t); code != http.StatusServiceUnavailable || n.Role != "follower" {
		t.Errorf("/primary of the follower: %d, %+v", code, n)
	}
	for _, n := range []*peer{a, b} {
		awaitReady(t, baseURL(t, n.proc), http.StatusOK)
	}
	if n := a.roleFile(t); n.Role != "primary" || n.Generation != 1 || n.Remaining <= 0 {
		t.Errorf("role file of the primary: %+v", n)
	}
	if e := b.order(t, "promote"); e.Code != 0 {
		t.Fatalf("promote ended with %d: %s", e.Code, e.Output)
	}
	a.await(t, "follower")
	for n, want := range map[*peer]string{a: "promote primary 1\ndemote follower 1\n", b: "promote primary 2\n"} {
		awaitText(t, n.path("hooks"), want)
	}
	awaitText(t, a.path("app"), "HUP")
	awaitText(t, b.path("app"), "start follower\nHUP")
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if x, y := a.roleFile(t), b.roleFile(t); x.Role != "follower" || y.Role != "primary" || y.Generation != 2 {
			return fmt.Errorf("role files say %+v and %+v", x, y)
		}
		return nil
	})
	b.write(t, "live.db", 5)
	stop(t, a.proc)
	stop(t, b.proc)
	if n := b.roleFile(t); n.Role == "primary" {
		t.Errorf("the role file of one that has ended says %+v", n)
	}
	b.isLast(t)
}

// awaitText waits until a file begins with a text.
func awaitText(t *testing.T, path, want string) {
	t.Helper()
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		got, err := os.ReadFile(path)
		if err == nil && !strings.Contains(string(got), want) {
			err = fmt.Errorf("%s holds %q, want %q", filepath.Base(path), got, want)
		}
		return err
	})
}

func TestANodeEndsWithItsApplicationAndHandsOver(t *testing.T) {
	t.Parallel()
	a := newPeer(t, "a", rig.S3(t), "")
	begin := a.path("go")
	a.more = fmt.Sprintf("exec: %q\n", script(t, fmt.Sprintf("while [ ! -e '%s' ]; do sleep 0.05; done\n%s\nexit 7\n", begin, writer(t, a.live(), modest(30)))))
	b := newPeer(t, "b", a.place, "")
	a.create(t, 10)
	a.start(t)
	a.await(t, "primary")
	b.start(t)
	b.awaitCopy(t, a)
	if e := a.order(t, "status"); !strings.Contains(e.Output, "node a: primary, generation 1, lease for another ") {
		t.Errorf("status says %s", e.Output)
	}
	if err := os.WriteFile(begin, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := a.proc.Wait(t, rig.Limit); e.Code != 7 {
		t.Errorf("the node ended with %d, want the application's 7", e.Code)
	}
	b.await(t, "primary")
	if l := testdb.ChainPrefix(t, a.live(), b.live()); l.N != 40 {
		t.Errorf("the next primary holds %d commits, want 40", l.N)
	}
	b.mustSync(t, "live.db")
	b.isLast(t)
}
