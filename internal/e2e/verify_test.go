//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// verify runs verify and returns how it ended.
func verify(t *testing.T, p rig.Place, flags ...string) rig.Exit {
	t.Helper()
	args := append([]string{"verify"}, flags...)
	return rig.Tidemark(t, p.Env, append(args, p.URL)...).Wait(t, rig.Limit)
}

// says fails the test unless a program ended with a code and said all of the texts.
func says(t *testing.T, e rig.Exit, code int, texts ...string) {
	t.Helper()
	if e.Code != code {
		t.Errorf("exit code %d, want %d: %s", e.Code, code, e.Output)
	}
	for _, text := range texts {
		if !strings.Contains(e.Output, text) {
			t.Errorf("output does not say %q: %s", text, e.Output)
		}
	}
}

func TestVerifyProvesAReplicaWhileTheSidecarGoesOn(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, db := live(t, testdb.Options{})
		commit(t, db, 50)
		sidecar := rig.Replicate(t, path, p)
		awaitFile(t, p)
		load := modest(0)
		load.Rate = 20
		writer := testdb.StartWriter(t, path, load)
		for range 3 {
			says(t, verify(t, p, "-against", path), 0, "all files are sound", path+" equals transaction")
		}
		writer.Stop(t)
		stop(t, sidecar)
		says(t, verify(t, p, "-against", path), 0, "equals transaction")
		restoresEqual(t, p, path)
	})
}

func TestVerifyNamesPagesThatAreNotWhatTheReplicaHas(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, db := live(t, testdb.Options{})
	commit(t, db, 80)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	rig.ReplicateOnce(t, path, p)
	testdb.Checkpoint(t, path)
	says(t, verify(t, p, "-against", path), 0)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, pgno := range []int{3, 7} {
		whole[(pgno-1)*4096+4000] ^= 1
	}
	damaged := path + "-damaged"
	if err := os.WriteFile(damaged, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	says(t, verify(t, p, "-against", damaged), 1, "2 pages differ: 3 7\n", "damaged differs from")
	restoresEqual(t, p, path)
}

func TestVerifyOfWhatLitestreamWrote(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	path, db := live(t, testdb.Options{})
	commit(t, db, 50)
	peer := rig.Litestream(t, path, p, "")
	awaitFile(t, p)
	load := modest(300)
	load.Rate = 100
	testdb.StartWriter(t, path, load).Wait(t)
	if e := peer.Stop(t, rig.Limit); e.Code != 0 {
		t.Fatalf("litestream exited with %d", e.Code)
	}
	says(t, verify(t, p, "-against", path), 0, "carry no database checksums", "equals transaction")
	restoresEqual(t, p, path)
}

func TestVerifyNamesDamagedAndMissingObjects(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	path, db := live(t, testdb.Options{})
	commit(t, db, 5)
	sidecar := rig.Replicate(t, path, p)
	awaitFile(t, p)
	instants(t, p, path, 6)
	stop(t, sidecar)
	says(t, verify(t, p), 0)
	files := p.Level(t, 0)
	for _, tt := range []struct {
		file   rig.File
		damage func(path string, raw []byte) error
		says   string
	}{
		{files[1], func(path string, raw []byte) error {
			raw[len(raw)/2] ^= 4
			return os.WriteFile(path, raw, 0o600)
		}, "fault: 0000/" + files[1].Name()},
		{files[2], func(path string, raw []byte) error { return os.WriteFile(path, raw[:7], 0o600) }, "fault: 0000/" + files[2].Name()},
		{files[3], func(path string, _ []byte) error { return os.Remove(path) },
			fmt.Sprintf("fault: transaction %016x: no sound file holds it", files[3].Min)},
	} {
		raw, err := os.ReadFile(tt.file.Path())
		if err != nil {
			t.Fatal(err)
		}
		if err := tt.damage(tt.file.Path(), slices.Clone(raw)); err != nil {
			t.Fatal(err)
		}
		says(t, verify(t, p), 1, tt.says)
		if e := rig.TryRestore(t, p, path+"-restored"); e.Code != 1 {
			t.Errorf("restore of %s exited with %d", tt.file.Name(), e.Code)
		}
		if err := os.WriteFile(tt.file.Path(), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	restoresEqual(t, p, path)
}
