//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

const (
	fleetSize = 60
	fleetOpen = 4
	// fleetFiles bounds the descriptors of a sidecar with fleetOpen databases.
	fleetFiles = 100
)

// fleet is a tree of directories full of databases.
type fleet struct {
	t      *testing.T
	p      rig.Place
	dir    string
	config string
	rnd    *rand.Rand
	tips   map[string]testdb.Link // by path
}

func newFleet(t *testing.T, p rig.Place) *fleet {
	f := &fleet{
		t: t, p: p, dir: t.TempDir(), rnd: rand.New(rand.NewPCG(11, 12)), tips: map[string]testdb.Link{},
		config: filepath.Join(t.TempDir(), "tidemark.yml"),
	}
	text := fmt.Sprintf("max-open-databases: %d\nsocket: off\ndbs:\n- dir: %q\n  pattern: '*.db'\n  recursive: true\n  watch: true\n"+
		"  replica: {url: %q}\n", fleetOpen, f.dir, p.URL)
	if err := os.WriteFile(f.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range fleetSize {
		f.commit(f.path(i), 1)
	}
	return f
}

// path is that of a database three levels deep at most.
func (f *fleet) path(i int) string {
	deep := []string{"", "north", filepath.Join("north", "east")}[i%3]
	return filepath.Join(f.dir, deep, fmt.Sprintf("tenant-%d.db", i))
}

// commit opens a database, which is made if need be, commits and closes it.
func (f *fleet) commit(path string, n int64) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	db := testdb.Open(f.t, path)
	testdb.Exec(f.t, db, "PRAGMA journal_mode=WAL")
	w, err := testdb.NewWriter(f.t.Context(), db, modest(n))
	if err == nil {
		_, err = w.Run(f.t.Context())
	}
	if err = errors.Join(err, db.Close()); err != nil {
		f.t.Fatal(err)
	}
	f.tips[path] = w.Tip()
}

func (f *fleet) start() *rig.Process {
	return rig.Tidemark(f.t, f.p.Env, "replicate", "-config", f.config)
}

// few fails the test if a sidecar has too many files open.
func (f *fleet) few(sidecar *rig.Process) {
	f.t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", sidecar.Pid()))
	if err != nil {
		f.t.Fatal(err)
	}
	if len(files) > fleetFiles {
		f.t.Errorf("%d files are open with %d databases at a time", len(files), fleetOpen)
	}
}

// replicas waits until every database has a file on the bucket.
func (f *fleet) replicas() {
	f.t.Helper()
	rig.Eventually(f.t, rig.Limit, func(context.Context) error {
		for path := range f.tips {
			if len(f.replica(path).Files(f.t)) == 0 {
				return fmt.Errorf("%s has no replica", path)
			}
		}
		return nil
	})
}

// replica is where that of a database is kept.
func (f *fleet) replica(path string) rig.Place {
	rel, err := filepath.Rel(f.dir, path)
	if err != nil {
		f.t.Fatal(err)
	}
	p := f.p
	p.Dir = filepath.Join(p.Dir, rel)
	return p
}

// uploaded tells whether the newest commit of every database is on the bucket.
func (f *fleet) uploaded(ctx context.Context) error {
	for path, tip := range f.tips {
		out := filepath.Join(f.t.TempDir(), "restored.db")
		if e := rig.Tidemark(f.t, f.p.Env, "restore", "-config", f.config, "-o", out, path).Wait(f.t, rig.Limit); e.Code != 0 {
			return fmt.Errorf("restore of %s exited with %d", path, e.Code)
		}
		if link, err := testdb.Verify(ctx, out); err != nil || link != tip {
			return fmt.Errorf("%s: commit %d is on the bucket, want %d: %w", path, link.N, tip.N, err)
		}
	}
	return nil
}

// restoreAll restores every database by its path and compares what there is to
// compare.
func (f *fleet) restoreAll() {
	f.t.Helper()
	for path, tip := range f.tips {
		out := filepath.Join(f.t.TempDir(), "restored.db")
		e := rig.Tidemark(f.t, f.p.Env, "restore", "-config", f.config, "-o", out, path).Wait(f.t, rig.Limit)
		if e.Code != 0 {
			f.t.Fatalf("restore of %s exited with %d", path, e.Code)
		}
		link, err := testdb.Verify(f.t.Context(), out)
		if err != nil || link != tip {
			f.t.Errorf("%s: restored commit %d, want %d: %v", path, link.N, tip.N, err)
		}
		if _, err := os.Stat(path); err == nil {
			testdb.SameDatabase(f.t, out, path)
		}
	}
}

func TestManyDatabasesTakeTurns(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		f := newFleet(t, p)
		sidecar := f.start()
		f.replicas()
		f.few(sidecar)
		for i := range 150 {
			f.commit(f.path(f.rnd.IntN(fleetSize)), 1+f.rnd.Int64N(3))
			switch i {
			case 30:
				f.few(sidecar)
				sidecar.Kill(t)
			case 50:
				sidecar = f.start()
			case 70: // more of them, in directories that are new too
				for k := fleetSize; k < fleetSize+6; k++ {
					f.commit(filepath.Join(f.dir, fmt.Sprintf("late-%d", k%2), fmt.Sprintf("tenant-%d.db", k)), 2)
				}
			}
		}
		f.replicas()
		f.few(sidecar)
		stop(t, sidecar)
		f.restoreAll()
	})
}

func TestADeletedDatabaseIsLetGoAndItsReplicaKept(t *testing.T) {
	t.Parallel()
	f := newFleet(t, rig.Directory(t))
	sidecar := f.start()
	f.replicas()
	gone := f.path(7)
	f.commit(gone, 3)
	awaitTXID(t, f.replica(gone), f.replica(gone).Newest(t)+1)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(gone + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if out := sidecar.Output(); !strings.Contains(out, "database gone") {
			return errors.New("the sidecar does not say that it is gone")
		}
		return nil
	})
	before, newest := f.tips[gone], f.replica(gone).Newest(t)
	f.restoreAll()
	f.commit(gone, 1) // a new one of that name
	if f.tips[gone] == before {
		t.Fatal("the database is the old one")
	}
	awaitTXID(t, f.replica(gone), newest+1)
	f.commit(f.path(8), 1)
	stop(t, sidecar)
	f.restoreAll()
}

func TestASecondSidecarTakesNoParkedDatabase(t *testing.T) {
	t.Parallel()
	f := newFleet(t, rig.Directory(t))
	sidecar := f.start()
	f.replicas()
	other := rig.Directory(t)
	refused := func(second *rig.Process) {
		t.Helper()
		rig.Eventually(t, rig.Limit, func(context.Context) error {
			if out := second.Output(); !strings.Contains(out, "replicated by another process") {
				return fmt.Errorf("the second sidecar does not say that there is a first one: %s", out)
			}
			return nil
		})
		second.Kill(t)
	}
	for _, i := range []int{0, 20, 40} { // few of them can be open
		refused(rig.Replicate(t, f.path(i), other))
	}
	refused(f.start())
	if n := len(other.Files(t)); n != 0 {
		t.Errorf("%d files were uploaded by a second sidecar", n)
	}
	f.commit(f.path(3), 2)
	stop(t, sidecar)
	f.restoreAll()
}

func TestAnOutageOfTheBucketDelaysManyDatabasesOnly(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	proxy := testbucket.NewProxy(t, p.Meter.Endpoint())
	f := newFleet(t, p.Via(proxy.Endpoint()))
	sidecar := f.start()
	f.replicas()
	proxy.Drop()
	for range 60 {
		f.commit(f.path(f.rnd.IntN(fleetSize)), 1)
	}
	f.few(sidecar)
	proxy.Heal()
	f.commit(f.path(0), 1)
	rig.Eventually(t, rig.Limit, func(ctx context.Context) error { return f.uploaded(ctx) })
	sidecar.Kill(t) // so that nothing is brought there by the end
	f.restoreAll()
}

func TestMoreBusyDatabasesThanMayBeOpenLoseNothingAtTheEnd(t *testing.T) {
	t.Parallel()
	f := newFleet(t, rig.Directory(t))
	sidecar := f.start()
	f.replicas()
	const busy = 4 * fleetOpen
	var group errgroup.Group
	writers := make([]*testdb.Writer, busy)
	for i := range writers {
		load := modest(100)
		load.Rate = 20
		w, err := testdb.NewWriter(t.Context(), testdb.Open(t, f.path(i)), load)
		if err != nil {
			t.Fatal(err)
		}
		writers[i] = w
		group.Go(func() error {
			_, err := w.Run(t.Context())
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, w := range writers {
		f.tips[f.path(i)] = w.Tip()
	}
	stop(t, sidecar)
	f.restoreAll()
}
