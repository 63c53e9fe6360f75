//go:build e2e

package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

const ballast = 16 << 20 // bytes that never change: a full copy would show

// loop is a writer at several hundred commits a second on a database, and
// what has been restored of it so far.
type loop struct {
	place  rig.Place
	path   string
	writer *testdb.WriterProcess
	load   testdb.Load
	rnd    *rand.Rand
	newest int64 // commit of the newest restore
}

func startLoop(t *testing.T, p rig.Place) *loop {
	t.Helper()
	return startLoopAt(t, p, 400)
}

// startLoopAt is startLoop at another rate; 0: as fast as it goes.
func startLoopAt(t *testing.T, p rig.Place, rate float64) *loop {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	l := &loop{place: p, rnd: rand.New(rand.NewPCG(seed, 0))}
	path, db := live(t, testdb.Options{})
	testdb.Exec(t, db, "CREATE TABLE ballast (b)", `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 16)
		INSERT INTO ballast SELECT randomblob(1<<20) FROM n`)
	l.path = path
	l.load = testdb.Load{Seed: 5, Rate: rate, Payload: 200, Churn: 1, Body: 600}
	l.writer = testdb.StartWriter(t, path, l.load)
	return l
}

// check restores, if there is anything to restore, and compares.
func (l *loop) check(t *testing.T) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "restored.db")
	files := l.place.Files(t)
	switch e := rig.TryRestore(t, l.place, out); {
	case e.Code == 3 && len(files) == 0:
		return
	case e.Code != 0:
		t.Fatalf("restore exited with %d", e.Code)
	case e.Took > 5*time.Second:
		t.Logf("restore of %d files took %v", len(files), e.Took)
	}
	link := testdb.ChainPrefix(t, out, l.path)
	if link.N < l.newest {
		t.Fatalf("restored commit %d, but %d was restored before", link.N, l.newest)
	}
	l.newest = link.N
	remove(t, out)
}

// end stops the writer and the sidecar, which must be up, and compares.
func (l *loop) end(t *testing.T, sidecar *rig.Process) {
	t.Helper()
	sum := l.writer.Stop(t)
	stop(t, sidecar)
	restoresEqual(t, l.place, l.path)
	if sum.Busy > 0 {
		t.Errorf("the writer found the database locked %d times", sum.Busy)
	}
	for _, f := range l.place.Level(t, 0) {
		if f.Min != f.Max {
			t.Errorf("level 0 has a file of TXIDs %d to %d, want one TXID a file", f.Min, f.Max)
		}
	}
	l.checkPast(t)
	changed := ballast + sum.Commits*frameBytes(t, l.load)
	up := l.place.Uploaded(t)
	t.Logf("%d commits (%.0f/s) changed %d MB, %d MB were uploaded in %d files",
		sum.Commits, float64(sum.Commits)/sum.Took.Seconds(), changed>>20, up>>20, len(l.place.Files(t)))
	if up >= 3*changed {
		t.Errorf("uploaded %d bytes for %d bytes that changed", up, changed)
	}
}

// checkPast restores some moments of the past.
func (l *loop) checkPast(t *testing.T) {
	t.Helper()
	files := l.place.Level(t, 0)
	for range 4 {
		txid := files[l.rnd.IntN(len(files))].Max
		testdb.ChainPrefix(t, rig.Restore(t, l.place, "-txid", fmt.Sprint(txid)), l.path)
	}
}

// frameBytes measures how many bytes of pages one commit of a load writes.
func frameBytes(t *testing.T, load testdb.Load) int64 {
	t.Helper()
	const commits = 400
	load.Commits, load.Rate = commits, 0
	path, db := live(t, testdb.Options{})
	testdb.Exec(t, db, "PRAGMA wal_autocheckpoint=0")
	w, err := testdb.NewWriter(t.Context(), db, load)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return info.Size() / commits
}

func TestSidecarKilledAtAnyMomentLosesAndForksNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		l := startLoop(t, p)
		for range 30 {
			sidecar := rig.Replicate(t, l.path, p)
			rig.Pause(t, time.Duration(l.rnd.IntN(900))*time.Millisecond)
			sidecar.Kill(t)
			l.check(t)
		}
		l.end(t, rig.Replicate(t, l.path, p))
	})
}

func TestSidecarKilledBesideAWriterAtFullSpeed(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		l := startLoopAt(t, p, 0)
		for range 6 {
			sidecar := rig.Replicate(t, l.path, p)
			rig.Pause(t, time.Duration(l.rnd.IntN(2000))*time.Millisecond)
			sidecar.Kill(t)
			l.check(t)
		}
		l.end(t, rig.Replicate(t, l.path, p))
	})
}
