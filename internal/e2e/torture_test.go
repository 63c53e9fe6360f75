//go:build e2e

package e2e_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// events is all that happens to databases, in the table and in the soak.
func events() []event {
	return slices.Concat(checkpointEvents(), closingEvents(), spaceEvents(), modeEvents(),
		replaceEvents(), toolEvents(), stateEvents(), spoolEvents(), keepEvents())
}

// TestReplicationGoesOnAfterWhateverHappens lets each event happen beside a
// sidecar that runs, that is down, and that is killed in the middle of it.
func TestReplicationGoesOnAfterWhateverHappens(t *testing.T) {
	t.Parallel()
	for _, e := range events() {
		for how, happen := range map[string]func(*testing.T, *victim, event){
			"up": whileUp, "down": whileDown, "killed": whileKilled,
		} {
			if e.beside && how != "up" {
				continue
			}
			t.Run(e.name+"/"+how, func(t *testing.T) {
				t.Parallel()
				v := newVictim(t, e)
				known := v.stored(t)
				past := v.restorePast(t, known)
				happen(t, v, e)
				v.recovers(t, e, known)
				testdb.SameDatabase(t, v.restorePast(t, known), past)
			})
		}
	}
}

// newVictim makes a database as the event wants it and waits until all of it
// is on its replica.
func newVictim(t *testing.T, e event) *victim {
	t.Helper()
	v := &victim{path: filepath.Join(t.TempDir(), "live.db"), place: rig.Directory(t), rnd: dice(t)}
	if e.s3 {
		v.place = rig.S3(t)
	}
	if e.keep {
		v.conf = config(t, "dbs:\n  - path: %s\n    journal-mode: keep\n    replica:\n      url: %q\n", v.path, v.place.URL)
	}
	v.lay(t, e.layout)
	v.start(t)
	awaitFile(t, v.place)
	v.commit(t, 3)
	awaitTXID(t, v.place, 2)
	return v
}

func (v *victim) start(t *testing.T) {
	t.Helper()
	if v.conf != "" {
		v.sidecar = rig.Tidemark(t, v.place.Env, "replicate", "-config", v.conf)
		return
	}
	v.sidecar = rig.Replicate(t, v.path, v.place)
}

func (v *victim) kill(t *testing.T) {
	t.Helper()
	v.sidecar.Kill(t)
	v.sidecar = nil
}

func whileUp(t *testing.T, v *victim, e event) {
	together(e.steps...)(t, v)
}

func whileDown(t *testing.T, v *victim, e event) {
	if v.rnd.IntN(2) == 0 {
		stop(t, v.sidecar)
		v.sidecar = nil
	} else {
		v.kill(t)
	}
	together(e.steps...)(t, v)
	v.start(t)
}

// whileKilled kills the sidecar before one step, starts it again before a
// later one, and kills it again while it recovers.
func whileKilled(t *testing.T, v *victim, e event) {
	dies := v.rnd.IntN(len(e.steps))
	rises := dies + 1 + v.rnd.IntN(len(e.steps)-dies)
	t.Logf("the sidecar was killed before step %d and started before step %d of %d", dies, rises, len(e.steps))
	for i, s := range e.steps {
		switch i {
		case dies:
			v.kill(t)
		case rises:
			v.start(t)
		}
		s(t, v)
	}
	if v.sidecar == nil {
		v.start(t)
	}
	rig.Pause(t, time.Duration(v.rnd.IntN(150))*time.Millisecond)
	v.kill(t)
	v.start(t)
}

// recovers lets the application go on, waits until the replica follows by
// itself, and compares again after the sidecar ended.
func (v *victim) recovers(t *testing.T, e event, known map[string]rig.File) {
	t.Helper()
	v.commit(t, 5)
	if v.rnd.IntN(2) == 0 {
		v.leave(t)
	}
	v.settled(t)
	v.leave(t)
	stop(t, v.sidecar)
	v.settled(t)
	var n int64
	for name, f := range v.stored(t) {
		if _, old := known[name]; !old {
			n += f.Size
		}
	}
	if e.most > 0 && n > e.most {
		t.Errorf("%d bytes were uploaded, want at most %d", n, e.most)
	}
	v.checkLog(t)
}

// restorePast restores the newest state of the known files.
func (v *victim) restorePast(t *testing.T, known map[string]rig.File) string {
	t.Helper()
	var newest uint64
	for _, f := range known {
		newest = max(newest, f.Max)
	}
	return rig.Restore(t, v.place, "-txid", fmt.Sprint(newest))
}

// checkLog wants a reason for each comparison of the whole database, and none
// twice.
func (v *victim) checkLog(t *testing.T) {
	t.Helper()
	var last string
	for line := range strings.Lines(v.sidecar.Output()) {
		_, reason, found := strings.Cut(line, "compared database with the page sums")
		if !found {
			continue
		}
		if !strings.Contains(reason, "reason=") || strings.Contains(reason, `reason=""`) {
			t.Errorf("a comparison has no reason: %s", line)
		}
		if reason == last && strings.Contains(reason, "different=0") {
			t.Errorf("the same comparison again: %s", line)
		}
		last = reason
	}
}
