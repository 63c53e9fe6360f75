//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
)

// damage is something that happens to one file.
type damage func(t *testing.T, path string, rnd *rand.Rand)

func truncated(t *testing.T, path string, rnd *rand.Rand) {
	if err := os.Truncate(path, int64(rnd.IntN(100))); err != nil {
		t.Fatal(err)
	}
}

func deleted(t *testing.T, path string, _ *rand.Rand) { remove(t, path) }

// garbled overwrites one piece of the file in place.
func garbled(t *testing.T, path string, rnd *rand.Rand) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() > 0 {
		piece := make([]byte, 64)
		for i := range piece {
			piece[i] = byte(rnd.Uint32())
		}
		_, err = f.WriteAt(piece, rnd.Int64N(max(1, info.Size()-64)))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// stateFiles returns the files of a kind in the state directory, which may
// come and go.
func stateFiles(t *testing.T, v *victim, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(stateDir(v.path), pattern))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// harms does damage to all files of a kind in the state directory.
func harms(pattern string, harm damage) step {
	return func(t *testing.T, v *victim) {
		for _, f := range stateFiles(t, v, pattern) {
			harm(t, f, v.rnd)
		}
	}
}

// forgets deletes the state directory, in which a sidecar may be making files.
func forgets(t *testing.T, v *victim) {
	rig.Eventually(t, rig.Limit, func(context.Context) error { return os.RemoveAll(stateDir(v.path)) })
}

// turnBack sets the times of the database and of all that the sidecar knows
// of it to another day.
func turnBack(by time.Duration) step {
	return func(t *testing.T, v *victim) {
		then := time.Now().Add(-by)
		roots := []string{v.path, v.path + "-wal", stateDir(v.path), v.place.Dir}
		for _, root := range roots {
			err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
				if err == nil {
					err = os.Chtimes(path, then, then)
				}
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// stateEvents damage what the sidecar knows.
func stateEvents() []event {
	events := []event{
		{name: "state directory deleted", steps: []step{commits(2), forgets, commits(3)}},
		{name: "state directory deleted and the database replaced", steps: []step{
			setAside, commits(10), bare, together(forgets, copyOver), commits(3),
		}, alone: true},
		{name: "lock file deleted", steps: []step{commits(2), harms("lock", deleted), commits(3)}},
		// A base that is days old has another snapshot made.
		{name: "times set back", steps: []step{commits(2), turnBack(72 * time.Hour), commits(3), leaves}},
		{name: "times of the future", steps: []step{commits(2), turnBack(-72 * time.Hour), commits(3), leaves}, most: few},
	}
	for name, harm := range map[string]damage{"deleted": deleted, "garbled": garbled, "truncated": truncated} {
		events = append(events, event{name: "page sums " + name, steps: []step{commits(2), harms("sums*", harm), commits(3)}})
	}
	return events
}

// spoolEvents damage what waits for upload while the bucket is away.
func spoolEvents() (events []event) {
	away := func(t *testing.T, v *victim) { v.place.Server.Stop() }
	back := func(t *testing.T, v *victim) { v.place.Server.Start() }
	for name, harm := range map[string]damage{"truncated": truncated, "deleted": deleted, "garbled": garbled} {
		events = append(events, event{name: "spool file " + name, s3: true, steps: []step{
			away, commits(5), awaitSpool, commits(5), harms("spool/*.ltx", harm), commits(5), back, commits(1),
		}})
	}
	return events
}

// awaitSpool gives a sidecar that is up the time to capture something. One that
// was started when the bucket was away already does not before it has asked it.
func awaitSpool(t *testing.T, v *victim) {
	end := time.Now().Add(5 * time.Second)
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if v.sidecar == nil || len(stateFiles(t, v, "spool/*.ltx")) > 0 || time.Now().After(end) {
			return nil
		}
		return errors.New("nothing is in the spool")
	})
}
