//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestParkedDatabasesAreMergedAndCleanedUp(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		f := newFleet(t, p)
		text, err := os.ReadFile(f.config)
		if err == nil {
			err = os.WriteFile(f.config, append([]byte(secondsOnly), text...), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		sidecar := f.start()
		f.replicas()
		for i := range 300 {
			f.commit(f.path(f.rnd.IntN(fleetSize)), 1)
			switch i {
			case 100:
				sidecar.Kill(t)
			case 120:
				sidecar = f.start()
			}
			rig.Pause(t, 20*time.Millisecond)
		}
		f.commit(f.path(0), 1) // whatever it takes, the clock of the bucket is known
		// A replica is looked after within a minute of a start, then as its levels say.
		rig.Eventually(t, time.Minute+rig.Limit, func(context.Context) error {
			for path := range f.tips {
				if files := f.replica(path).Files(t); len(files) > 3 {
					return fmt.Errorf("%d files are left of %s", len(files), path)
				}
			}
			return nil
		})
		f.few(sidecar)
		rig.Pause(t, 30*time.Second) // the last files get as old as they must
		quietFor(t, p, 10*time.Second)
		stop(t, sidecar)
		f.restoreAll()
		one := f.replica(f.path(1))
		if p.Meter == nil {
			one.URL = "file://" + one.Dir
			testdb.SameDatabase(t, rig.LitestreamRestore(t, one), f.path(1))
		}
	})
}

// quietFor waits for a while in which nothing is asked of the bucket: what is
// due is done then.
func quietFor(t *testing.T, p rig.Place, while time.Duration) {
	t.Helper()
	if p.Meter == nil {
		return
	}
	for end := time.Now().Add(rig.Limit); ; {
		before := len(p.Meter.Requests())
		rig.Pause(t, while)
		n := len(p.Meter.Requests()) - before
		if n == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d requests in %s without anything to do", n, while)
		}
	}
}
