//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

const (
	chaosEnv  = "TIDEMARK_CHAOS" // how long the soak lasts, such as 10m
	chaosTime = time.Minute
)

// chaos is one sidecar of some databases, to all of which anything happens in
// an order made by chance.
type chaos struct {
	rnd     *rand.Rand
	conf    string
	sidecar *rig.Process // nil: down
	victims []*victim
	events  []event
}

func TestChaos(t *testing.T) {
	t.Parallel()
	lasts := chaosTime
	if s := os.Getenv(chaosEnv); s != "" {
		var err error
		if lasts, err = time.ParseDuration(s); err != nil {
			t.Fatalf("%s: %v", chaosEnv, err)
		}
	}
	c := newChaos(t)
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		v := c.victims[c.rnd.IntN(len(c.victims))]
		e := c.events[c.rnd.IntN(len(c.events))]
		t.Logf("%s: %s", filepath.Base(v.path), e.name)
		c.suffer(t, v, e)
		if c.rnd.IntN(3) == 0 {
			c.check(t, v)
		}
		c.resume(t, v)
	}
	for _, v := range c.victims {
		c.check(t, v)
	}
	c.up(t)
	stop(t, c.sidecar)
	for _, v := range c.victims {
		v.settled(t)
	}
}

func newChaos(t *testing.T) *chaos {
	t.Helper()
	c := &chaos{rnd: dice(t)}
	c.events = slices.DeleteFunc(events(), func(e event) bool { return e.beside || e.s3 || e.keep })
	dir := t.TempDir()
	var dbs strings.Builder
	for i := range 1 + c.rnd.IntN(3) {
		v := &victim{path: filepath.Join(dir, fmt.Sprintf("live-%d.db", i)), place: rig.Directory(t), rnd: c.rnd}
		v.lay(t, testdb.Options{AutoVacuum: []string{"NONE", "FULL", "INCREMENTAL"}[c.rnd.IntN(3)]})
		fmt.Fprintf(&dbs, "  - path: %s\n    replica:\n      url: %q\n", v.path, v.place.URL)
		c.victims = append(c.victims, v)
		c.resume(t, v)
	}
	c.conf = config(t, "dbs:\n%s", dbs.String())
	c.up(t)
	for _, v := range c.victims {
		awaitFile(t, v.place) // others restore of it, too
	}
	return c
}

// resume lets a process write to a database, at a rate that leaves others a
// chance.
func (c *chaos) resume(t *testing.T, v *victim) {
	t.Helper()
	v.leave(t)
	v.process = testdb.StartWriter(t, v.path, testdb.Load{Seed: c.rnd.Int64(), Rate: 30, Payload: 200, Churn: 2, Body: 1500})
}

// suffer lets an event happen, with blows to the sidecar between its steps.
func (c *chaos) suffer(t *testing.T, v *victim, e event) {
	t.Helper()
	v.process.Stop(t)
	v.process = nil
	c.bound(t, v)
	quiet := func() {}
	if !e.alone && c.rnd.IntN(2) == 0 {
		quiet = noise(t, v)
	}
	for _, s := range e.steps {
		c.blow(t)
		s(t, v)
	}
	quiet()
	v.leave(t)
	if v.kept != "" {
		remove(t, v.kept, v.kept+"-wal", v.kept+"-shm")
		v.kept = ""
	}
}

// bound keeps a database from growing for ever.
func (c *chaos) bound(t *testing.T, v *victim) {
	t.Helper()
	v.sql(t, makeTall)
	if testdb.Number(t, v.app(t), "SELECT count(*) FROM tall") > 1000 {
		v.sql(t, "DELETE FROM tall WHERE rowid > 200", "VACUUM")
	}
}

// noise commits on another connection until it is told to be quiet.
func noise(t *testing.T, v *victim) (quiet func()) {
	t.Helper()
	db := testdb.Open(t, v.path)
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	group.Go(func() error {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			_, err := db.Exec("CREATE TABLE IF NOT EXISTS noise (k INTEGER PRIMARY KEY, b); INSERT OR REPLACE INTO noise VALUES (abs(random() % 50), randomblob(3000))")
			if err != nil && !testdb.Busy(err) {
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	})
	return func() {
		cancel()
		if err := errors.Join(group.Wait(), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// blow does something to the sidecar, or nothing.
func (c *chaos) blow(t *testing.T) {
	t.Helper()
	switch dice := c.rnd.IntN(12); {
	case c.sidecar == nil:
		if dice < 6 {
			c.up(t)
		}
	case dice == 0:
		c.sidecar.Kill(t)
		c.set(nil)
	case dice == 1:
		// Between two steps a log may be in use that nobody else can open any
		// more, so the last commits may be missing until the next start.
		if e := end(t, c.sidecar); e.Code != 0 && e.Code != 1 {
			t.Fatalf("the sidecar exited with %d after SIGTERM", e.Code)
		}
		c.set(nil)
	case dice == 2:
		c.sidecar.Kill(t)
		c.set(nil)
		c.up(t)
	case dice == 3:
		c.sidecar.Signal(t, syscall.SIGSTOP)
		rig.Pause(t, time.Duration(c.rnd.IntN(600))*time.Millisecond)
		c.sidecar.Signal(t, syscall.SIGCONT)
	case dice == 4:
		rig.Pause(t, time.Duration(c.rnd.IntN(400))*time.Millisecond)
	}
}

// up starts the sidecar if it is down.
func (c *chaos) up(t *testing.T) {
	t.Helper()
	if c.sidecar == nil {
		c.set(rig.Tidemark(t, nil, "replicate", "-config", c.conf))
	}
}

func (c *chaos) set(sidecar *rig.Process) {
	c.sidecar = sidecar
	for _, v := range c.victims {
		v.sidecar = sidecar
	}
}

// check waits until a database is replicated, and compares.
func (c *chaos) check(t *testing.T, v *victim) {
	t.Helper()
	if v.process != nil {
		v.process.Stop(t)
		v.process = nil
	}
	c.up(t)
	v.settled(t)
}
