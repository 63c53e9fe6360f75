//go:build e2e

package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// script writes a shell script for -exec.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// writer is the command line of an application that makes commits.
func writer(t *testing.T, path string, load testdb.Load) string {
	t.Helper()
	args, err := testdb.WriterCommand(path, load)
	if err != nil {
		t.Fatal(err)
	}
	return "'" + strings.Join(append(args, "-alone"), "' '") + "'"
}

func TestExecReturnsTheExitCodeAndUploadsTheLastCommit(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, _ := live(t, testdb.Options{})
		app := script(t, writer(t, path, modest(40))+"\nexit 7\n")
		e := rig.Replicate(t, path, p, "-exec", app).Wait(t, rig.Limit)
		if e.Code != 7 {
			t.Errorf("exit code %d, want the application's 7", e.Code)
		}
		if l := testdb.ChainPrefix(t, path, path); l.N != 40 {
			t.Errorf("the application made %d commits, want 40", l.N)
		}
		restoresEqual(t, p, path)
	})
}

func TestExecPassesSignalsOn(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p := rig.Directory(t)
		path, _ := live(t, testdb.Options{})
		app := script(t, "exec "+writer(t, path, testdb.Load{Rate: 100, Payload: 50}))
		sidecar := rig.Replicate(t, path, p, "-exec", app)
		awaitTXID(t, p, 5)
		sidecar.Signal(t, sig)
		if e := sidecar.Wait(t, rig.Limit); e.Code != 0 {
			t.Errorf("exit code %d after %v, want the application's 0", e.Code, sig)
		}
		restoresEqual(t, p, path)
	}
}

func TestExecRestoresWhatIsMissingBeforeTheApplicationStarts(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path := filepath.Join(t.TempDir(), "live.db")
		first := script(t, writer(t, path, modest(25)))
		if e := rig.Replicate(t, path, p, "-restore-if-missing", "-exec", first).Wait(t, rig.Limit); e.Code != 0 {
			t.Fatalf("exit code %d on an empty bucket without a database", e.Code)
		}
		wipe(t, path)
		second := script(t, "test -s '"+path+"' || exit 9\n"+writer(t, path, modest(25)))
		if e := rig.Replicate(t, path, p, "-restore-if-missing", "-exec", second).Wait(t, rig.Limit); e.Code != 0 {
			t.Fatalf("exit code %d, want 0; 9: the database was not there", e.Code)
		}
		if l := testdb.ChainPrefix(t, path, path); l.N != 50 {
			t.Errorf("the chain has %d commits, want 25 and 25", l.N)
		}
		restoresEqual(t, p, path)
	})
}

func TestApplicationIsStartedAfterTheFirstBase(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, db := live(t, testdb.Options{})
	commit(t, db, 5)
	list := filepath.Join(t.TempDir(), "list")
	app := script(t, "find '"+p.Dir+"' -name '*.ltx' > '"+list+"'\n")
	if e := rig.Replicate(t, path, p, "-exec", app).Wait(t, rig.Limit); e.Code != 0 {
		t.Fatalf("exit code %d", e.Code)
	}
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		_, err := os.Stat(list)
		return err
	})
	if b, err := os.ReadFile(list); err != nil || len(b) == 0 {
		t.Errorf("the application saw %q on the bucket (%v), want the base", b, err)
	}
	restoresEqual(t, p, path)
}

func TestExecNeverStartsTheApplicationOnANewDatabaseWhileItIsUncertain(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	path, db := live(t, testdb.Options{})
	commit(t, db, 10)
	rig.ReplicateOnce(t, path, p)
	kept := filepath.Join(t.TempDir(), "kept.db")
	testdb.Exec(t, db, "VACUUM INTO '"+kept+"'")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	wipe(t, path)
	started := filepath.Join(t.TempDir(), "started")
	app := script(t, "touch '"+started+"'\n"+writer(t, path, modest(5)))
	stranger := p
	stranger.Env = append(append([]string{}, p.Env...), "AWS_SECRET_ACCESS_KEY=wrong")
	sidecar := rig.Replicate(t, path, stranger, "-restore-if-missing", "-exec", app)
	rig.Pause(t, 2*time.Second)
	sidecar.Stop(t, rig.Limit)
	for _, f := range []string{started, path} {
		if _, err := os.Stat(f); !os.IsNotExist(err) {
			t.Errorf("%s is there: the application was started without its database", f)
		}
	}
	if e := rig.Replicate(t, path, p, "-restore-if-missing", "-exec", app).Wait(t, rig.Limit); e.Code != 0 {
		t.Fatalf("exit code %d", e.Code)
	}
	testdb.ChainPrefix(t, kept, path)
	restoresEqual(t, p, path)
}
