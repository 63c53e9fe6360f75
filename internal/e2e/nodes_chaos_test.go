//go:build e2e

package e2e_test

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
)

// beyond is when a lease that is not renewed has surely been taken.
const beyond = nodesTTL*11/10 + 3*time.Second

// mishap happens to a node, or to all of them.
type mishap func(t *testing.T, c *nodes, d *node, rnd *rand.Rand)

// some is a time below most.
func some(rnd *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(rnd.Int64N(int64(most)))
}

// deaths are what happens to processes.
func deaths() map[string]mishap {
	return map[string]mishap{
		"kill -9": func(t *testing.T, _ *nodes, d *node, rnd *rand.Rand) {
			d.kill(t)
			rig.Pause(t, some(rnd, beyond))
		},
		"SIGSTOP past expiry": func(t *testing.T, _ *nodes, d *node, rnd *rand.Rand) {
			d.process.Signal(t, syscall.SIGSTOP)
			rig.Pause(t, beyond)
			d.process.Signal(t, syscall.SIGCONT)
		},
		"SIGSTOP for a moment": func(t *testing.T, _ *nodes, d *node, rnd *rand.Rand) {
			d.process.Signal(t, syscall.SIGSTOP)
			rig.Pause(t, some(rnd, nodesTTL))
			d.process.Signal(t, syscall.SIGCONT)
		},
		"wall clock set": func(t *testing.T, _ *nodes, d *node, rnd *rand.Rand) {
			d.setClock(t, some(rnd, 2*time.Hour)-time.Hour, 1)
			rig.Pause(t, some(rnd, nodesTTL))
		},
		"restart with another clock": func(t *testing.T, _ *nodes, d *node, rnd *rand.Rand) {
			d.kill(t)
			d.setClock(t, some(rnd, 28*time.Minute)-14*time.Minute, 0.9+rnd.Float64()/5)
		},
		"restart": func(t *testing.T, _ *nodes, d *node, rnd *rand.Rand) {
			d.leave(t)
			rig.Pause(t, some(rnd, time.Second))
		},
		"all killed at once": func(t *testing.T, c *nodes, _ *node, rnd *rand.Rand) {
			for _, d := range c.all {
				d.kill(t)
			}
			rig.Pause(t, some(rnd, 2*time.Second))
		},
		"rolling restart": func(t *testing.T, c *nodes, _ *node, _ *rand.Rand) {
			for _, d := range c.all {
				d.leave(t)
				c.up(t, d)
				c.primary(t)
			}
		},
	}
}

// faults are what happens between a node and the bucket.
func faults() map[string]mishap {
	return map[string]mishap{
		"lease out of reach": func(t *testing.T, _ *nodes, d *node, _ *rand.Rand) {
			d.drop(lock)
			rig.Pause(t, beyond)
		},
		"data out of reach": func(t *testing.T, _ *nodes, d *node, rnd *rand.Rand) {
			d.drop(data)
			rig.Pause(t, some(rnd, beyond))
		},
		"everything out of reach": func(t *testing.T, _ *nodes, d *node, _ *rand.Rand) {
			d.proxy.Drop()
			rig.Pause(t, beyond)
		},
		"no answers": func(t *testing.T, _ *nodes, d *node, rnd *rand.Rand) {
			d.proxy.Hang()
			rig.Pause(t, some(rnd, beyond))
		},
		"replies lost": func(t *testing.T, _ *nodes, d *node, rnd *rand.Rand) {
			d.proxy.LoseReplies(1+rnd.IntN(6), testbucket.Put)
			rig.Pause(t, some(rnd, nodesTTL))
		},
		"409": func(t *testing.T, _ *nodes, d *node, rnd *rand.Rand) {
			d.proxy.StormNext(1+rnd.IntN(6), 409, "ConditionalRequestConflict", testbucket.Put)
			rig.Pause(t, some(rnd, nodesTTL))
		},
		"412": func(t *testing.T, _ *nodes, d *node, rnd *rand.Rand) {
			d.proxy.StormNext(1+rnd.IntN(6), 412, "PreconditionFailed", testbucket.Put)
			rig.Pause(t, some(rnd, nodesTTL))
		},
	}
}

// TestChaosOfNodes lets anything happen to nodes that share a replica, in an
// order made by chance, most often to the primary.
func TestChaosOfNodes(t *testing.T) {
	t.Parallel()
	lasts := chaosTime
	if s := os.Getenv(chaosEnv); s != "" {
		var err error
		if lasts, err = time.ParseDuration(s); err != nil {
			t.Fatalf("%s: %v", chaosEnv, err)
		}
	}
	rnd := dice(t)
	c := newNodes(t, 3, 100)
	c.withFaultyClocks(t)
	for _, d := range c.all {
		c.up(t, d)
	}
	can := deaths()
	maps.Copy(can, faults())
	names := slices.Sorted(maps.Keys(can))
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		c.primary(t).commits(t)
		d := c.all[rnd.IntN(len(c.all))]
		if p := c.primary(t); rnd.IntN(3) > 0 {
			d = p
		}
		name := names[rnd.IntN(len(names))]
		t.Logf("node %s: %s", d.name, name)
		can[name](t, c, d, rnd)
		d.proxy.Heal()
		for _, d := range c.all {
			c.up(t, d)
		}
	}
	c.settle(t)
}
