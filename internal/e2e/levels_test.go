//go:build e2e

package e2e_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// secondsOnly makes the sidecar merge, snapshot and delete within seconds.
const secondsOnly = `
levels: [{interval: 2s}, {interval: 5s}, {interval: 10s}]
snapshot: {interval: 10s, retention: 20s}
l0-retention: 10s
`

// sidecarWith starts a sidecar for one database with settings of its own. It is
// asked over the socket that socketOf names.
func sidecarWith(t *testing.T, path string, p rig.Place, settings string) *rig.Process {
	t.Helper()
	config := filepath.Join(t.TempDir(), "tidemark.yml")
	text := fmt.Sprintf("%s\nsocket: %s\ndbs: [{path: %q, replica: {url: %q}}]\n", settings, socketOf(path), path, p.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return rig.Tidemark(t, p.Env, "replicate", "-config", config)
}

func socketOf(path string) string { return filepath.Join(filepath.Dir(path), "s.sock") }

// ask runs a command against the sidecar of a database.
func ask(t *testing.T, path, command string, flags ...string) rig.Exit {
	t.Helper()
	args := append([]string{command, "-socket", socketOf(path)}, flags...)
	return rig.Tidemark(t, nil, append(args, path)...).Wait(t, rig.Limit)
}

// diary notes how many commits there were at which time.
type diary struct {
	db    *sql.DB
	times []time.Time
	links []int64
}

func (d *diary) note(t *testing.T) {
	t.Helper()
	n := testdb.Number(t, d.db, "SELECT coalesce(max(n), 0) FROM chain")
	d.times, d.links = append(d.times, time.Now()), append(d.links, n)
}

// between returns how many commits there were surely at one time, and at most
// at another.
func (d *diary) between(from, to time.Time) (least, most int64) {
	most = d.links[len(d.links)-1]
	for i, at := range d.times {
		if !at.After(from) {
			least = d.links[i]
		}
		if at.After(to) {
			return least, min(most, d.links[i])
		}
	}
	return least, most
}

// life runs a writer for so long, with the sidecar killed now and then. A writer
// slow enough leaves the machine to others.
func (d *diary) life(t *testing.T, path string, p rig.Place, length time.Duration) *rig.Process {
	t.Helper()
	writer := testdb.StartWriter(t, path, testdb.Load{Seed: 11, Rate: 20, Payload: 120, Churn: 2, Body: 700})
	sidecar := sidecarWith(t, path, p, secondsOnly)
	for i := range int(length / (500 * time.Millisecond)) {
		d.note(t)
		rig.Pause(t, 500*time.Millisecond)
		if i%34 == 33 {
			sidecar.Kill(t)
			sidecar = sidecarWith(t, path, p, secondsOnly)
		}
		if i%80 == 79 {
			d.comesBack(t, p, path)
		}
	}
	writer.Stop(t)
	d.note(t)
	return sidecar
}

// comesBack restores the moments within the retention while the sidecar runs.
func (d *diary) comesBack(t *testing.T, p rig.Place, path string) {
	t.Helper()
	if e := ask(t, path, "sync", "-wait"); e.Code != 0 {
		t.Fatalf("sync exited with %d: %s", e.Code, e.Output)
	}
	now := time.Now()
	d.note(t) // the writer may go on
	for back := time.Duration(0); back <= 15*time.Second; back += 5 * time.Second {
		at := now.Add(-back)
		link := testdb.ChainPrefix(t, rig.Restore(t, p, "-timestamp", at.UTC().Format(time.RFC3339Nano)), path)
		// What ends a file of level 1 is there; one takes two seconds, and
		// more while the sidecar starts anew.
		if least, most := d.between(at.Add(-4*time.Second), at); link.N < least || link.N > most {
			t.Errorf("%s back has commit %d, want %d to %d", back, link.N, least, most)
		}
	}
}

func TestEveryMomentWithinTheRetentionIsRestoredWhileFilesComeAndGo(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, db := live(t, testdb.Options{})
		d := &diary{db: db}
		sidecar := d.life(t, path, p, 2*time.Minute)
		d.comesBack(t, p, path)
		everyTwentieth(t, p, path)
		merged := rig.LitestreamRestore(t, p)
		testdb.SameDatabase(t, merged, path)
		restsWithLittle(t, p, path)
		stop(t, sidecar)
		restoresEqual(t, p, path)
		testdb.SameDatabase(t, rig.LitestreamRestore(t, p), path)
	})
}

// everyTwentieth restores every 20th state that is there, newest first. It may
// expire before its turn comes.
func everyTwentieth(t *testing.T, p rig.Place, path string) {
	t.Helper()
	restored := 0
	raw := p.Level(t, 0)
	for i := len(raw) - 1; i >= 0; i -= 20 {
		out := filepath.Join(t.TempDir(), "restored.db")
		e := rig.TryRestore(t, p, out, "-txid", fmt.Sprint(raw[i].Max))
		_, gone := os.Stat(raw[i].Path())
		if e.Code == 0 {
			testdb.ChainPrefix(t, out, path)
			restored++
		} else if gone == nil {
			t.Errorf("restore of %d exited with %d: %s", raw[i].Max, e.Code, e.Output)
		}
	}
	t.Logf("%d states of %d files came back", restored, len(raw))
	if restored == 0 {
		t.Error("no state came back")
	}
}

// restsWithLittle waits until all that can go is gone, here and there.
func restsWithLittle(t *testing.T, p rig.Place, path string) {
	t.Helper()
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if files := p.Files(t); len(files) > 4 {
			return fmt.Errorf("%d files are left on the replica", len(files))
		}
		return nil
	})
	var local []string
	err := filepath.Walk(stateDir(path), func(name string, info os.FileInfo, err error) error {
		if err == nil && strings.HasSuffix(name, ".ltx") {
			local = append(local, name)
		}
		return err
	})
	if err != nil || len(local) > 0 {
		t.Errorf("left here are %v (%v)", local, err)
	}
}

func TestADatabaseThatComesLateIsMergedWithinSeconds(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path := filepath.Join(t.TempDir(), "live.db")
	sidecar := sidecarWith(t, path, p, "levels: [{interval: 1s}]\nsnapshot: {interval: 1h}\n")
	rig.Pause(t, 2*time.Second)
	db := testdb.Create(t, path, testdb.Options{})
	awaitFile(t, p)
	commit(t, db, 3)
	began := time.Now()
	rig.Eventually(t, rig.Limit, func(context.Context) error { return levels(t, p, 1) })
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("level 1 came after %s", took)
	}
	stop(t, sidecar)
	restoresEqual(t, p, path)
}
