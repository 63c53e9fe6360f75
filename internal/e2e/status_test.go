//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestStatusTellsPositionsAndTheLastError(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	path, db := live(t, testdb.Options{})
	socket := t.TempDir() + "/tidemark.sock"
	conf := config(t, "socket:\n  enabled: true\n  path: %s\ndbs:\n  - path: %s\n    replica:\n      url: %q\n", socket, path, p.URL)
	sidecar := rig.Tidemark(t, p.Env, "replicate", "-config", conf)
	commit(t, db, 20)
	awaitFile(t, p)
	status := func() string {
		e := rig.Tidemark(t, nil, "status", "-json", "-socket", socket).Wait(t, rig.Limit)
		if e.Code != 0 || !json.Valid([]byte(e.Output)) {
			return fmt.Sprintf("exit code %d: %s", e.Code, e.Output)
		}
		return e.Output
	}
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		// Local and remote stand at the same transaction.
		if s := status(); strings.Count(s, fmt.Sprintf("%016x", p.Newest(t))) < 2 {
			return fmt.Errorf("TXID %d of the bucket is not local and remote position in %s", p.Newest(t), s)
		}
		return nil
	})
	p.Server.Stop()
	commit(t, db, 1)
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if s := status(); !strings.Contains(s, "refused") {
			return fmt.Errorf("the refused connection is not in %s", s)
		}
		return nil
	})
	p.Server.Start()
	stop(t, sidecar)
	restoresEqual(t, p, path)
}

func TestVersionNamesTheBundledSQLite(t *testing.T) {
	e := rig.Tidemark(t, nil, "version").Wait(t, rig.Limit)
	if e.Code != 0 || !strings.Contains(strings.ToLower(e.Output), "sqlite 3.") {
		t.Errorf("version exited with %d and printed %q", e.Code, e.Output)
	}
}
