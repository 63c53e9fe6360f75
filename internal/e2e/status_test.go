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
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		d, err := status(t, socket)
		if n := p.Newest(t); err == nil && (d.Captured.TXID != n || d.Uploaded.TXID != n || d.LagSeconds != 0 || d.Error != "") {
			err = fmt.Errorf("status %+v, want everything at TXID %d", d, n)
		}
		return err
	})
	p.Server.Stop()
	commit(t, db, 1)
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		d, err := status(t, socket)
		if err == nil && (d.Captured.TXID <= d.Uploaded.TXID || d.LagSeconds <= 0 || d.Error == "") {
			err = fmt.Errorf("status %+v, want a lag and an error", d)
		}
		return err
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

type databaseStatus struct {
	Path               string
	Captured, Uploaded struct{ TXID uint64 }
	LagSeconds         float64 `json:"lag_seconds"`
	Error              string
}

// status asks a sidecar with one database.
func status(t *testing.T, socket string) (d databaseStatus, err error) {
	t.Helper()
	e := rig.Tidemark(t, nil, "status", "-json", "-socket", socket).Wait(t, rig.Limit)
	if e.Code != 0 {
		return d, fmt.Errorf("status exited with %d: %s", e.Code, e.Output)
	}
	var sidecars []struct{ Databases []databaseStatus }
	if err := json.Unmarshal([]byte(e.Output), &sidecars); err != nil {
		return d, err
	}
	if len(sidecars) != 1 || len(sidecars[0].Databases) != 1 {
		return d, fmt.Errorf("status of more or less than one database: %s", e.Output)
	}
	return sidecars[0].Databases[0], nil
}
