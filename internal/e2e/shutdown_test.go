//go:build e2e

package e2e_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestSIGTERMUploadsTheLastCommit(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, db := live(t, testdb.Options{})
		sidecar := rig.Replicate(t, path, p)
		awaitFile(t, p)
		commit(t, db, 20)
		stop(t, sidecar)
		restoresEqual(t, p, path)
	})
}

func TestSIGINTUploadsTheLastCommit(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, db := live(t, testdb.Options{})
	sidecar := rig.Replicate(t, path, p)
	awaitFile(t, p)
	commit(t, db, 20)
	sidecar.Signal(t, syscall.SIGINT)
	if e := sidecar.Wait(t, rig.Limit); e.Code != 0 {
		t.Errorf("the sidecar exited with %d after SIGINT", e.Code)
	}
	restoresEqual(t, p, path)
}

// cutOff starts a sidecar, cuts it off from its bucket and makes commits.
func cutOff(t *testing.T, timeout string) (*rig.Process, rig.Place, string) {
	t.Helper()
	p := rig.S3(t)
	path, db := live(t, testdb.Options{})
	conf := config(t, "shutdown-timeout: %s\ndbs:\n  - path: %s\n    replica:\n      url: %q\n", timeout, path, p.URL)
	sidecar := rig.Tidemark(t, p.Env, "replicate", "-config", conf)
	awaitFile(t, p)
	p.Server.Stop()
	commit(t, db, 20)
	return sidecar, p, path
}

func TestSIGTERMWithTheBucketAwayFailsWithinTheShutdownTimeout(t *testing.T) {
	t.Parallel()
	sidecar, p, path := cutOff(t, "2s")
	start := time.Now()
	e := sidecar.Stop(t, rig.Limit)
	if e.Code <= 0 {
		t.Errorf("the sidecar exited with %d although the last commit is not on the bucket", e.Code)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("the sidecar ended after %v, want 2s", took)
	}
	p.Server.Start()
	rig.ReplicateOnce(t, path, p)
	restoresEqual(t, p, path)
}

func TestSecondSignalEndsTheSidecarAtOnce(t *testing.T) {
	t.Parallel()
	sidecar, p, path := cutOff(t, "10m")
	sidecar.Signal(t, syscall.SIGINT) // the same one twice at once is one wish
	rig.Pause(t, 500*time.Millisecond)
	if !sidecar.Alive() {
		t.Fatal("the sidecar gave up before its shutdown timeout")
	}
	start := time.Now()
	e := sidecar.Stop(t, rig.Limit)
	if took := time.Since(start); e.Code == 0 || took > 5*time.Second {
		t.Errorf("the sidecar ended with %d after %v, want a failure at once", e.Code, took)
	}
	p.Server.Start()
	rig.ReplicateOnce(t, path, p)
	restoresEqual(t, p, path)
}

func TestOnceIsTruthful(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	path, db := live(t, testdb.Options{})
	commit(t, db, 20)
	rig.ReplicateOnce(t, path, p)
	restoresEqual(t, p, path)

	p.Server.Stop()
	commit(t, db, 20)
	conf := config(t, "shutdown-timeout: 2s\ndbs:\n  - path: %s\n    replica:\n      url: %q\n", path, p.URL)
	if e := rig.Tidemark(t, p.Env, "replicate", "-once", "-config", conf).Wait(t, rig.Limit); e.Code <= 0 {
		t.Errorf("replicate -once exited with %d although the bucket is away", e.Code)
	}
	p.Server.Start()
	rig.ReplicateOnce(t, path, p)
	restoresEqual(t, p, path)
	up := p.Uploaded(t)
	rig.ReplicateOnce(t, path, p)
	if n := p.Uploaded(t); n != up {
		t.Errorf("%d bytes were uploaded though nothing changed", n-up)
	}
}

func TestFinalSyncOutlastsABucketThatRefusesForAWhile(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	proxy := testbucket.NewProxy(t, p.Meter.Endpoint())
	path, db := live(t, testdb.Options{})
	sidecar := rig.Replicate(t, path, p.Via(proxy.Endpoint()))
	awaitFile(t, p)
	proxy.Status(429)
	commit(t, db, 20)
	sidecar.Signal(t, syscall.SIGTERM)
	rig.Pause(t, 3*time.Second)
	if !sidecar.Alive() {
		t.Error("the sidecar gave up after less than 3 s")
	}
	proxy.Heal()
	if e := sidecar.Wait(t, rig.Limit); e.Code != 0 {
		t.Errorf("exit code %d, want 0: the bucket took the last commit", e.Code)
	}
	restoresEqual(t, p, path)
}
