//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// instant is a time at which exactly so many commits were made and uploaded.
type instant struct {
	at      time.Time
	commits int64
	txid    uint64
}

// instants makes commits one by one and notes a time after the upload of each.
func instants(t *testing.T, p rig.Place, path string, n int) []instant {
	t.Helper()
	db := testdb.Open(t, path)
	w, err := testdb.NewWriter(t.Context(), db, modest(0))
	if err != nil {
		t.Fatal(err)
	}
	var all []instant
	for range n {
		before := p.Newest(t)
		if err := w.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		awaitTXID(t, p, before+1)
		all = append(all, instant{time.Now(), w.Tip().N, p.Newest(t)})
		rig.Pause(t, 3*time.Millisecond) // files carry milliseconds
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

// stamp is a time as -timestamp takes it.
func stamp(at time.Time) string { return at.Format(time.RFC3339Nano) }

// restoredAt restores the state of a time and returns how many commits it has.
func restoredAt(t *testing.T, p rig.Place, at time.Time, live string) int64 {
	t.Helper()
	return testdb.ChainPrefix(t, rig.Restore(t, p, "-timestamp", stamp(at)), live).N
}

func TestEveryMomentComesBackAsItWas(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, db := live(t, testdb.Options{})
		commit(t, db, 5)
		sidecar := rig.Replicate(t, path, p)
		awaitFile(t, p)
		before := time.Now().Add(-time.Minute)
		all := instants(t, p, path, 15)
		stop(t, sidecar)
		for _, i := range all {
			if got := restoredAt(t, p, i.at, path); got != i.commits {
				t.Errorf("at %s there are %d commits, want %d", stamp(i.at), got, i.commits)
			}
		}
		for _, i := range []instant{all[3], all[11]} {
			if got := testdb.ChainPrefix(t, rig.Restore(t, p, "-txid", fmt.Sprint(i.txid)), path).N; got != i.commits {
				t.Errorf("transaction %d has %d commits, want %d", i.txid, got, i.commits)
			}
		}
		out := filepath.Join(t.TempDir(), "restored.db")
		e := rig.TryRestore(t, p, out, "-timestamp", stamp(before))
		if e.Code != 1 || !strings.Contains(e.Output, "covered is from") {
			t.Errorf("before everything: exit code %d: %s", e.Code, e.Output)
		}
		onlyIn(t, out)
		testdb.SameDatabase(t, rig.Restore(t, p, "-timestamp", "-0s"), path)
	})
}

// TestTheTimesOfFilesAreInclusive restores by the times that ltx shows, and by
// a millisecond less.
func TestTheTimesOfFilesAreInclusive(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	path, db := live(t, testdb.Options{})
	commit(t, db, 5)
	sidecar := rig.Replicate(t, path, p)
	awaitFile(t, p)
	instants(t, p, path, 6)
	stop(t, sidecar)
	files := listed(t, p)
	if len(files) < 7 {
		t.Fatalf("ltx lists %d files", len(files))
	}
	for i, f := range files[1:] {
		now := testdb.ChainPrefix(t, rig.Restore(t, p, "-txid", fmt.Sprint(f.Max)), path).N
		then := testdb.ChainPrefix(t, rig.Restore(t, p, "-txid", fmt.Sprintf("%016x", files[i].Max)), path).N
		if got := restoredAt(t, p, f.Time, path); got != now {
			t.Errorf("at the time of %d there are %d commits, want %d", f.Max, got, now)
		}
		if got := restoredAt(t, p, f.Time.Add(-time.Millisecond), path); got != then {
			t.Errorf("just before the time of %d there are %d commits, want %d", f.Max, got, then)
		}
	}
	restoresEqual(t, p, path)
}

type listedFile struct {
	Max  uint64 `json:"max_txid"`
	Time time.Time
}

// listed is what ltx says, in order of the transactions.
func listed(t *testing.T, p rig.Place) (files []listedFile) {
	t.Helper()
	e := rig.Tidemark(t, p.Env, "ltx", "-times", "-json", p.URL).Wait(t, rig.Limit)
	if err := json.Unmarshal([]byte(e.Output), &files); err != nil || e.Code != 0 {
		t.Fatalf("ltx exited with %d: %v: %s", e.Code, err, e.Output)
	}
	slices.SortFunc(files, func(a, b listedFile) int { return int(int64(a.Max) - int64(b.Max)) })
	return slices.CompactFunc(files, func(a, b listedFile) bool { return a.Max == b.Max })
}

func TestMomentsOfALitestreamReplicaWithItsLevels(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, db := live(t, testdb.Options{})
		commit(t, db, 5)
		peer := rig.Litestream(t, path, p, hasty)
		w, err := testdb.NewWriter(t.Context(), db, modest(0))
		if err != nil {
			t.Fatal(err)
		}
		var all []instant
		rig.Eventually(t, rig.Limit, func(ctx context.Context) error {
			if err := w.Commit(ctx); err != nil {
				return err
			}
			all = append(all, instant{at: time.Now(), commits: w.Tip().N})
			rig.Pause(t, 30*time.Millisecond)
			if n := p.Newest(t); n < 10 { // several are merged into one state
				return fmt.Errorf("TXID %d", n)
			}
			return levels(t, p, 0, 1, 2, 9)
		})
		if e := peer.Stop(t, rig.Limit); e.Code != 0 {
			t.Fatalf("litestream exited with %d", e.Code)
		}
		last, distinct := int64(0), map[int64]bool{}
		for i := len(all) - 1; i >= 0; i -= 1 + len(all)/12 {
			out := filepath.Join(t.TempDir(), "restored.db")
			e := rig.TryRestore(t, p, out, "-timestamp", stamp(all[i].at))
			if e.Code != 0 {
				if !strings.Contains(e.Output, "covered is from") {
					t.Errorf("at %s: exit code %d", stamp(all[i].at), e.Code)
				}
				onlyIn(t, out)
				break // all that is earlier is not covered either
			}
			got := testdb.ChainPrefix(t, out, path).N
			if got > all[i].commits || last > 0 && got > last {
				t.Errorf("at %s there are %d commits, there were %d, and %d later", stamp(all[i].at), got, all[i].commits, last)
			}
			last, distinct[got] = got, true
		}
		if len(distinct) < 3 {
			t.Errorf("only the states %v were restored", distinct)
		}
		testdb.SameDatabase(t, rig.Restore(t, p, "-timestamp", "-0s"), path)
	})
}

func TestAnOlderStateLeavesANoteOfItsPosition(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, db := live(t, testdb.Options{})
	commit(t, db, 5)
	sidecar := rig.Replicate(t, path, p)
	awaitFile(t, p)
	i := instants(t, p, path, 4)[1]
	stop(t, sidecar)
	out := rig.Restore(t, p, "-timestamp", stamp(i.at))
	note, err := os.ReadFile(filepath.Join(stateDir(out), "restored"))
	if want := fmt.Sprintf("%016x ", i.txid); err != nil || !strings.HasPrefix(string(note), want) || len(note) != 34 {
		t.Errorf("the note is %q, %v; want %q and a checksum", note, err, want)
	}
	restoresEqual(t, p, path)
}

func TestGoingOnFromAnOlderStateIsOneHistory(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, db := live(t, testdb.Options{})
		commit(t, db, 300)
		sidecar := rig.Replicate(t, path, p)
		awaitFile(t, p)
		before := instants(t, p, path, 6)
		stop(t, sidecar)
		older := rig.Restore(t, p, "-timestamp", stamp(before[2].at))
		newest := p.Newest(t)
		sidecar = rig.Replicate(t, older, p)
		awaitTXID(t, p, newest+1)
		revert, base := p.Level(t, 0), p.Files(t)
		slices.SortFunc(base, func(a, b rig.File) int { return int(b.Size - a.Size) })
		if f := revert[len(revert)-1]; f.Max != newest+1 || f.Size > base[0].Size/2 {
			t.Errorf("going back took %d bytes in %s, the whole database takes %d", f.Size, f.Name(), base[0].Size)
		}
		after := instants(t, p, older, 4)
		stop(t, sidecar)
		for _, i := range before {
			if got := restoredAt(t, p, i.at, path); got != i.commits {
				t.Errorf("before the fork, at %s there are %d commits, want %d", stamp(i.at), got, i.commits)
			}
		}
		for _, i := range after {
			if got := restoredAt(t, p, i.at, older); got != i.commits {
				t.Errorf("after the fork, at %s there are %d commits, want %d", stamp(i.at), got, i.commits)
			}
		}
		says(t, verify(t, p, "-against", older), 0, "equals transaction")
		restoresEqual(t, p, older)
	})
}
