//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestSeveralDatabasesMoveTogetherAndABrokenOneHoldsNone(t *testing.T) {
	t.Parallel()
	p := rig.At(t, testbucket.Gateway(t), "lake")
	a, b := newPeer(t, "a", p, ""), newPeer(t, "b", p, "")
	a.names = []string{"x.db", "y.db", "z.db"}
	b.names = a.names
	a.create(t, 10)
	a.start(t)
	a.await(t, "primary")
	b.start(t)
	b.awaitCopy(t, a)
	stop(t, b.proc)
	for _, name := range a.names {
		a.write(t, name, 5)
		a.mustSync(t, name)
	}
	// While b is away, everything of y that it would go on from is damaged.
	broken := a.replicaOf("y.db")
	a.proc.Kill(t)
	var kept []func()
	for _, f := range broken.Files(t) {
		kept = append(kept, hide(t, f.Path()))
	}
	b.start(t)
	s := b.await(t, "primary")
	for _, d := range s.Databases {
		if bad := strings.HasSuffix(d.Path, "y.db"); bad != (d.Error != "") {
			t.Errorf("%s: state %s, error %q", d.Path, d.State, d.Error)
		}
	}
	for _, name := range []string{"x.db", "z.db"} {
		b.write(t, name, 5)
		b.mustSync(t, name)
		testdb.ChainPrefix(t, a.path(name), b.path(name))
	}
	for _, putBack := range kept {
		putBack()
	}
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if e := b.order(t, "sync", "-wait", b.path("y.db")); e.Code != 0 {
			return errors.New(e.Output)
		}
		return nil
	})
	testdb.SameDatabase(t, b.path("y.db"), a.path("y.db"))
	b.isLast(t)
}

// hide damages a file and returns what makes it whole again.
func hide(t *testing.T, path string) (putBack func()) {
	t.Helper()
	was, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte("damaged"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.WriteFile(path, was, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnIdleNodeCostsOneRequestARenewalOrALook(t *testing.T) {
	t.Parallel()
	server := testbucket.Gateway(t)
	a := newPeer(t, "a", rig.At(t, server, "lake/db"), "levels: []\n")
	b := newPeer(t, "b", rig.At(t, server, "lake/db"), "levels: []\n")
	a.create(t, 10)
	a.start(t)
	a.await(t, "primary")
	b.start(t)
	b.awaitCopy(t, a)
	const idle = 10 * time.Second
	rig.Pause(t, 2*time.Second)
	before := []int{len(a.place.Meter.Requests()), len(b.place.Meter.Requests())}
	rig.Pause(t, idle)
	for i, n := range []*peer{a, b} {
		all := n.place.Meter.Requests()[before[i]:]
		verbs := map[string]int{}
		for _, r := range all {
			verbs[r.Method+" "+kindOf(r)]++
		}
		t.Logf("node %s, idle for %v (renew 1s, poll 300ms, follow-interval 100ms): %d requests, %.0f a minute: %v",
			n.name, idle, len(all), float64(len(all))*time.Minute.Seconds()/idle.Seconds(), verbs)
		most := map[*peer]int{a: 2 * 11, b: 34 + 100 + 10}[n] // a renewal with a look at the newest file; polls and looks
		if len(all) > most {
			t.Errorf("node %s sent %d requests in %v, want %d at most", n.name, len(all), idle, most)
		}
	}
	a.isLast(t)
}

func kindOf(r rig.Request) string {
	switch {
	case strings.Contains(r.Query, "list-type"):
		return "list"
	case strings.HasSuffix(r.Path, "lock.json"):
		return "lock"
	}
	return fmt.Sprintf("object %d", r.Status)
}

func TestABucketIsProbedBeforeALeaseIsTrusted(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	a := newPeer(t, "a", p, "")
	a.probe = "on"
	a.create(t, 5)
	a.start(t)
	a.await(t, "primary")
	if text := a.proc.Output(); !strings.Contains(text, "conditional writes work") {
		t.Errorf("nothing was probed: %s", text)
	}
	before := len(p.Meter.Requests())
	stop(t, a.proc)
	a.start(t)
	a.await(t, "primary")
	if n := len(p.Meter.Requests()) - before; n > 60 {
		t.Errorf("the second start sent %d requests: it probed again", n)
	}
	a.mustSync(t, "live.db")
	a.isLast(t)
}
