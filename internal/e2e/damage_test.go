//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

func TestLostStateDirectoryCostsNoUploadWhereTheRemoteIsEqual(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		path, db := live(t, testdb.Options{})
		commit(t, db, 100)
		rig.ReplicateOnce(t, path, p)
		commit(t, db, 20)
		rig.ReplicateOnce(t, path, p)
		up := p.Uploaded(t)
		if _, err := os.Stat(stateDir(path)); err != nil {
			t.Fatal(err)
		}
		remove(t, stateDir(path))
		rig.ReplicateOnce(t, path, p)
		if n := p.Uploaded(t); n != up {
			t.Errorf("%d bytes were uploaded although the remote equals the database", n-up)
		}
		commit(t, db, 5)
		rig.ReplicateOnce(t, path, p)
		if n := p.Uploaded(t) - up; n > 60_000 {
			t.Errorf("%d bytes were uploaded for 5 small commits", n)
		}
		restoresEqual(t, p, path)
	})
}

// spooled returns the captured files that wait in the state directory.
func spooled(t *testing.T, path string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(stateDir(path), func(f string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(f, ".ltx") {
			files = append(files, f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestSpoolFilesThatWereCutOrLost(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(path string, size int64) error{
		"empty":     func(path string, _ int64) error { return os.Truncate(path, 0) },
		"50 bytes":  func(path string, _ int64) error { return os.Truncate(path, 50) },
		"cut end":   func(path string, size int64) error { return os.Truncate(path, size-8) },
		"not there": func(path string, _ int64) error { return os.Remove(path) },
	} {
		t.Run(name, func(t *testing.T) {
			p := rig.S3(t)
			path, db := live(t, testdb.Options{})
			commit(t, db, 20)
			sidecar := rig.Replicate(t, path, p)
			awaitFile(t, p)
			p.Server.Stop()
			commit(t, db, 20)
			rig.Eventually(t, rig.Limit, func(context.Context) error {
				if len(spooled(t, path)) == 0 {
					return errors.New("nothing is spooled")
				}
				return nil
			})
			sidecar.Kill(t)
			for _, f := range spooled(t, path) {
				info, err := os.Stat(f)
				if err == nil {
					err = harm(f, info.Size())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			p.Server.Start()
			rig.ReplicateOnce(t, path, p)
			restoresEqual(t, p, path)
		})
	}
}

func TestStateDirectoryOfAnotherTimeIsNotBelieved(t *testing.T) {
	t.Parallel()
	p := rig.Directory(t)
	path, db := live(t, testdb.Options{})
	commit(t, db, 30)
	rig.ReplicateOnce(t, path, p)
	old := filepath.Join(t.TempDir(), "state")
	if err := os.CopyFS(old, os.DirFS(stateDir(path))); err != nil {
		t.Fatal(err)
	}
	commit(t, db, 30)
	rig.ReplicateOnce(t, path, p)
	remove(t, stateDir(path))
	if err := os.CopyFS(stateDir(path), os.DirFS(old)); err != nil {
		t.Fatal(err)
	}
	rig.ReplicateOnce(t, path, p)
	commit(t, db, 5)
	rig.ReplicateOnce(t, path, p)
	restoresEqual(t, p, path)
}
