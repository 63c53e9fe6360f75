//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/internal/testdb"
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
	env     []string
	proxy   *testbucket.Proxy // between it and the bucket
	process *rig.Process      // nil: down
	lives   []*rig.Process    // all that were
}

// nodes share a replica.
type nodes struct {
	place rig.Place
	all   []*node
}

// newNodes makes n nodes that are down, whose applications make so many
// commits a second.
func newNodes(t *testing.T, n, rate int) *nodes {
	t.Helper()
	place := rig.S3(t)
	c := &nodes{place: place}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		dir := t.TempDir()
		d := &node{
			name: string(rune('a' + i)), path: filepath.Join(dir, "live.db"), log: filepath.Join(dir, "application.log"),
			role: filepath.Join(dir, "role"), proxy: testbucket.NewProxy(t, place.Server.Endpoint()),
		}
		d.conf = config(t, "exec: %q\nshutdown-timeout: 10s\nlease:\n  enabled: true\n  node: %s\n  ttl: %s\nrole-file: %s\n"+
			"dbs:\n  - path: %s\n    replica:\n      url: %q\n",
			"'"+self+"'", d.name, nodesTTL, d.role, d.path, place.Via(d.proxy.Endpoint()).URL)
		d.env = append(place.Env, applicationVariable(d.path, d.log, os.Getenv("TIDEMARK_BIN"), rate))
		c.all = append(c.all, d)
	}
	return c
}

// up starts a node if it is down.
func (d *node) up(t *testing.T) {
	t.Helper()
	if d.process == nil || !d.process.Alive() {
		d.process = rig.Tidemark(t, d.env, "replicate", "-config", d.conf)
		d.lives = append(d.lives, d.process)
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
	if e := d.process.Stop(t, rig.Limit); e.Code != 0 {
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

// settle starts all nodes, waits until they agree, ends them, the primary last,
// and compares what it left with what was committed anywhere.
func (c *nodes) settle(t *testing.T) {
	t.Helper()
	for _, d := range c.all {
		d.proxy.Heal()
		d.up(t)
	}
	p := c.primary(t)
	p.commits(t)
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		for _, d := range c.all {
			if d != p && d.says() != "follower" {
				return fmt.Errorf("node %s says %q", d.name, d.says())
			}
		}
		return nil
	})
	c.followersHave(t, p)
	for _, d := range c.all {
		if d != p {
			d.leave(t)
		}
	}
	p.leave(t)
	c.check(t, p)
}

// followersHave waits until every follower has applied a row that the primary
// has by now.
func (c *nodes) followersHave(t *testing.T, p *node) {
	t.Helper()
	var run string
	var n int64
	row := testdb.Open(t, p.path).QueryRowContext(t.Context(), "SELECT run, n FROM rows ORDER BY rowid DESC LIMIT 1")
	if err := row.Scan(&run, &n); err != nil {
		t.Fatal(err)
	}
	for _, d := range c.all {
		if d == p {
			continue
		}
		rig.Eventually(t, rig.Limit, func(ctx context.Context) error {
			var have int
			db := testdb.Open(t, d.path)
			defer db.Close()
			err := db.QueryRowContext(ctx, "SELECT count(*) FROM rows WHERE run = ? AND n = ?", run, n).Scan(&have)
			if err == nil && have == 0 {
				err = fmt.Errorf("row %d of %s is not there", n, run)
			}
			if err != nil {
				return fmt.Errorf("node %s: %w", d.name, err)
			}
			return nil
		})
	}
}

// check compares what the last primary left with the replica and with what
// applications have seen.
func (c *nodes) check(t *testing.T, last *node) {
	t.Helper()
	if e := rig.Tidemark(t, c.place.Env, "verify", c.place.URL).Wait(t, rig.Limit); e.Code != 0 {
		t.Errorf("verify exited with %d:\n%s", e.Code, e.Output)
	}
	restored := rig.Restore(t, c.place)
	testdb.SameDatabase(t, restored, last.path)
	var logs []string
	aside := []map[string]bool{rowsOf(t, restored)}
	for _, d := range c.all {
		logs = append(logs, d.log)
		copies, err := filepath.Glob(filepath.Join(stateDir(d.path), "quarantine", "*", "*.db"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range copies {
			aside = append(aside, rowsOf(t, path))
		}
	}
	l := readLedger(t, logs...)
	if n, one := l.unkept(aside[0]); n > 0 {
		t.Errorf("%d rows that were acknowledged are not in the replica, such as %s", n, one)
	}
	if n, one := l.missing(aside...); n > 0 {
		t.Errorf("%d rows that were committed are neither in the replica nor in a quarantine, such as %s", n, one)
	}
	t.Logf("%d rows committed, %d runs, %d in the replica, %d quarantined copies", len(l.rows), len(l.acknowledged), len(aside[0]), len(aside)-1)
	if len(l.rows) == 0 || len(l.acknowledged) == 0 {
		t.Error("nothing was committed or acknowledged, so nothing was tested")
	}
	if t.Failed() {
		c.tell(t)
	}
}

// tell logs what all processes have said.
func (c *nodes) tell(t *testing.T) {
	t.Helper()
	for _, d := range c.all {
		for i, p := range d.lives {
			t.Logf("node %s, life %d:\n%s", d.name, i+1, p.Output())
		}
	}
}
