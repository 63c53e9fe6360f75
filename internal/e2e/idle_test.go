//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// ticks returns the CPU time of a process in hundredths of a second.
func ticks(t *testing.T, pid int) (n int64) {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	for _, f := range fields[11:13] { // utime, stime
		var v int64
		if _, err := fmt.Sscan(f, &v); err != nil {
			t.Fatal(err)
		}
		n += v
	}
	return n
}

func TestIdleDatabaseCostsNoRequestAndNoTime(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(t *testing.T, path string){
		"after commits": func(*testing.T, string) {},
		"after a vacuum while the sidecar was down": func(t *testing.T, path string) {
			testdb.Exec(t, testdb.Open(t, path), "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")
		},
		"after the state directory was lost": func(t *testing.T, path string) { remove(t, stateDir(path)) },
	} {
		t.Run(name, func(t *testing.T) {
			p := rig.S3(t)
			path, db := live(t, testdb.Options{})
			commit(t, db, 300)
			rig.ReplicateOnce(t, path, p)
			before(t, path)
			// What was just written is merged later: once, and then no more.
			sidecar := sidecarWith(t, path, p, "levels: [{interval: 1s}]\nl0-retention: 3s\nsnapshot: {interval: 24h, retention: 3s}\n")
			testdb.StartWriter(t, path, modest(100)).Wait(t)
			rig.Eventually(t, rig.Limit, func(context.Context) error { return levels(t, p, 1) })
			rig.Pause(t, 6*time.Second)
			settle(t, p)
			requests, newest, time0 := len(p.Meter.Requests()), p.Newest(t), ticks(t, sidecar.Pid())
			rig.Pause(t, 5*time.Second)
			if n := len(p.Meter.Requests()) - requests; n != 0 {
				t.Errorf("%d requests in 5 s without a commit", n)
			}
			if n := p.Newest(t); n != newest {
				t.Errorf("TXID %d follows %d without a commit", n, newest)
			}
			if n := ticks(t, sidecar.Pid()) - time0; n > 25 {
				t.Errorf("%d ms of CPU in 5 s without a commit", n*10)
			}
			stop(t, sidecar)
			restoresEqual(t, p, path)
		})
	}
}

// settle waits until no request has passed for two seconds.
func settle(t *testing.T, p rig.Place) {
	t.Helper()
	last, since := -1, time.Now()
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if n := len(p.Meter.Requests()); n != last {
			last, since = n, time.Now()
		}
		if quiet := time.Since(since); quiet < 2*time.Second {
			return fmt.Errorf("the last request passed %v ago", quiet)
		}
		return nil
	})
}
