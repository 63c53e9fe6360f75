//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
)

// nodesTTL is that of the lease of tests with several nodes: a crash is
// followed by another primary after 1.1 times of it and some more.
const nodesTTL = 6 * time.Second

// node is a machine with a database, a sidecar and, while it is the primary,
// an application that writes.
type node struct {
	name    string
	path    string // of the database
	log     string // of the application
	role    string // file
	conf    string
	clock   string // file that sets it, if the binary goes by one
	env     []string
	proxy   *testbucket.Proxy // between it and the bucket
	process *rig.Process      // nil: down
	lives   []*rig.Process    // all that were
}

// nodes share a replica.
type nodes struct {
	place  rig.Place
	binary string
	all    []*node
}

// newNodes makes n nodes that are down, whose applications make so many
// commits a second.
func newNodes(t *testing.T, n, rate int) *nodes {
	t.Helper()
	place := rig.S3(t)
	c := &nodes{place: place, binary: os.Getenv("TIDEMARK_BIN")}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		dir := t.TempDir()
		d := &node{
			name: string(rune('a' + i)), path: filepath.Join(dir, "live.db"), log: filepath.Join(dir, "application.log"),
			role: filepath.Join(dir, "role"), clock: filepath.Join(dir, "clock"), proxy: testbucket.NewProxy(t, place.Server.Endpoint()),
		}
		d.conf = config(t, "exec: %q\nshutdown-timeout: 10s\nlease:\n  enabled: true\n  node: %s\n  ttl: %s\nrole-file: %s\n"+
			"dbs:\n  - path: %s\n    replica:\n      url: %q\n",
			"'"+self+"'", d.name, nodesTTL, d.role, d.path, place.Via(d.proxy.Endpoint()).URL)
		d.env = append(place.Env, applicationVariable(d.path, d.log, c.binary, rate), "TIDEMARK_FAULTY_CLOCK="+d.clock)
		c.all = append(c.all, d)
	}
	return c
}

// up starts a node if it is down.
func (c *nodes) up(t *testing.T, d *node) {
	t.Helper()
	if d.process == nil || !d.process.Alive() {
		d.process = rig.Start(t, rig.Command{Path: c.binary, Args: []string{"replicate", "-config", d.conf}, Env: d.env})
		d.lives = append(d.lives, d.process)
	}
}

// withFaultyClocks has nodes whose clocks can be set.
func (c *nodes) withFaultyClocks(t *testing.T) {
	t.Helper()
	c.binary = filepath.Join(t.TempDir(), "tidemark-faultyclock")
	build := exec.Command("go", "build", "-tags", "faultyclock", "-o", c.binary, "./cmd/tidemark")
	build.Dir = rig.Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build tidemark: %v\n%s", err, out)
	}
}

// setClock lets the wall clock of a node be ahead, and its clocks run at a rate
// from its next start on.
func (d *node) setClock(t *testing.T, ahead time.Duration, rate float64) {
	t.Helper()
	next := d.clock + ".next"
	put := os.WriteFile(next, fmt.Appendf(nil, "%f %f\n", ahead.Seconds(), rate), 0o600)
	if err := errors.Join(put, os.Rename(next, d.clock)); err != nil {
		t.Fatal(err)
	}
}

// kill ends a node at once.
func (d *node) kill(t *testing.T) {
	t.Helper()
	if d.process != nil {
		d.process.Kill(t)
		d.process = nil
	}
}

// leave ends a node in good order.
func (d *node) leave(t *testing.T) {
	t.Helper()
	if d.process == nil {
		return
	}
	if e := end(t, d.process); e.Code != 0 {
		t.Errorf("node %s exited with %d after SIGTERM", d.name, e.Code)
	}
	d.process = nil
}

// says returns the role that a node tells programs beside it.
func (d *node) says() string {
	var note struct {
		Role  string
		Until time.Time
	}
	text, err := os.ReadFile(d.role)
	if err != nil || json.Unmarshal(text, &note) != nil || d.process == nil {
		return ""
	}
	if note.Role == "primary" && time.Now().After(note.Until) {
		return "overdue"
	}
	return note.Role
}

// primary waits until one node, and no other, is the primary and its
// application commits.
func (c *nodes) primary(t *testing.T) (p *node) {
	t.Helper()
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		var roles []string
		p = nil
		for _, d := range c.all {
			roles = append(roles, d.name+" "+d.says())
			if d.says() == "primary" {
				if p != nil {
					return fmt.Errorf("two primaries: %s and %s", p.name, d.name)
				}
				p = d
			}
		}
		if p == nil {
			return fmt.Errorf("no primary: %s", strings.Join(roles, ", "))
		}
		return nil
	})
	return p
}

// commits waits until the application of a node has committed.
func (d *node) commits(t *testing.T) {
	t.Helper()
	was := written(d.log)
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if written(d.log) <= was {
			return fmt.Errorf("the application of node %s commits nothing", d.name)
		}
		return nil
	})
}

func written(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// lock strikes what asks for the lease, data all else.
func lock(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/lock.json") }

func data(r *http.Request) bool { return !lock(r) }

// drop breaks the connections of some requests of a node, until its proxy is
// healed.
func (d *node) drop(which func(*http.Request) bool) {
	d.proxy.Inject(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if which(r) {
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, r)
		})
	})
}
