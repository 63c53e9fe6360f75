//go:build e2e

package e2e_test

import (
	"path/filepath"
	"testing"
)

// TestRollingRestartsLoseNothing deploys a new version twenty times: one node
// after the other is ended in good order and started again, while applications
// commit.
func TestRollingRestartsLoseNothing(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 2, 200)
	for _, d := range c.all {
		c.up(t, d)
	}
	for range 20 {
		p := c.primary(t)
		p.commits(t)
		p.leave(t)
		c.primary(t).commits(t)
		c.up(t, p)
	}
	c.settle(t)
	for _, d := range c.all {
		aside, err := filepath.Glob(filepath.Join(stateDir(d.path), "quarantine", "*"))
		if err != nil || len(aside) > 0 {
			t.Errorf("node %s set aside %q, %v", d.name, aside, err)
		}
	}
}
