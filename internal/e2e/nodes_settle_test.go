//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// settle starts all nodes, waits until they agree, ends them, the primary last,
// and compares what it left with what was committed anywhere.
func (c *nodes) settle(t *testing.T) {
	t.Helper()
	for _, d := range c.all {
		d.proxy.Heal()
		c.up(t, d)
	}
	p := c.primary(t)
	p.commits(t)
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if len(readLedger(t, p.log).acknowledged) == 0 {
			return fmt.Errorf("nothing that node %s commits is acknowledged", p.name)
		}
		return nil
	})
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
