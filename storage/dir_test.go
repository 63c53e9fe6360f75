package storage_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

func TestDirKeepsTheContract(t *testing.T) {
	storagetest.Suite(t, func(t *testing.T) storage.Bucket { return newDir(t, filepath.Join(t.TempDir(), "new/bucket")) })
}

func newDir(t *testing.T, root string) *storage.Dir {
	t.Helper()
	d, err := storage.NewDir(root)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func store(t *testing.T, b storage.Bucket, key, content string) storage.Object {
	t.Helper()
	object, err := b.Put(t.Context(), key, strings.NewReader(content), storage.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func listed(t *testing.T, b storage.Bucket, prefix string) (keys []string, err error) {
	t.Helper()
	for object, err := range b.List(t.Context(), prefix, "") {
		if err != nil {
			return keys, err
		}
		keys = append(keys, object.Key)
	}
	return keys, nil
}

func TestNewDirRefusesWhatIsNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{"", "a\x00b", file, filepath.Join(file, "below")} {
		if d, err := storage.NewDir(root); err == nil {
			t.Errorf("%q: got %v, want an error", root, d)
		}
	}
}

func TestNewDirCreatesNothing(t *testing.T) {
	root := filepath.Join(t.TempDir(), "later")
	d := newDir(t, root)
	if _, err := listed(t, d, ""); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("root: got %v, want that it does not exist", err)
	}
}

func TestFilesArePrivate(t *testing.T) {
	root := filepath.Join(t.TempDir(), "bucket")
	store(t, newDir(t, root), "a/b/c", "x")
	for name, want := range map[string]fs.FileMode{"": 0o700, "a": 0o700, "a/b": 0o700, "a/b/c": 0o600} {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%q: mode %o, want %o", name, got, want)
		}
	}
}

func TestSymlinksAreNeverFollowedOut(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"dir": outside, "file": filepath.Join(outside, "secret")} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	d := newDir(t, root)
	for _, key := range []string{"dir/secret", "file"} {
		if _, _, err := d.Get(t.Context(), key, storage.Range{}); err == nil || errors.Is(err, storage.ErrNotFound) {
			t.Errorf("get %s: got %v, want an error of its own", key, err)
		}
	}
	if _, err := d.Put(t.Context(), "dir/new", strings.NewReader("x"), storage.Condition{}); err == nil {
		t.Error("put through a link succeeded")
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("outside now holds %v", entries)
	}
	for _, prefix := range []string{"", "dir/", "fi"} {
		if keys, err := listed(t, d, prefix); err == nil {
			t.Errorf("list %q: got %v, want an error that names the link", prefix, keys)
		}
	}
}

func TestReservedNamesAreNoKeys(t *testing.T) {
	root := t.TempDir()
	d := newDir(t, root)
	object := store(t, d, "a/lease", "x")
	if _, err := d.Put(t.Context(), "a/lease", strings.NewReader("y"), storage.Condition{ETag: object.ETag}); err != nil {
		t.Fatal(err)
	}
	if got, err := listed(t, d, ""); err != nil || len(got) != 1 {
		t.Errorf("listed %v, %v: want a/lease alone", got, err)
	}
	for _, key := range []string{".tidemark-lock", "a/.tidemark-tmp-1", ".tidemark-x/y"} {
		if _, err := d.Put(t.Context(), key, strings.NewReader("x"), storage.Condition{}); err == nil {
			t.Errorf("put %s succeeded", key)
		}
	}
}

func TestOldTemporaryFilesAreSwept(t *testing.T) {
	root := t.TempDir()
	d := newDir(t, root)
	store(t, d, "a/x", "x")
	old, young := filepath.Join(root, "a/.tidemark-tmp-OLD"), filepath.Join(root, "a/.tidemark-tmp-YOUNG")
	for _, name := range []string{old, young} {
		if err := os.WriteFile(name, []byte("cut"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	if got, err := listed(t, d, ""); err != nil || len(got) != 1 {
		t.Errorf("listed %v, %v", got, err)
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("old temporary file: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("young temporary file: %v", err)
	}
}

func TestNothingIsLeftOfRefusedWrites(t *testing.T) {
	root := t.TempDir()
	d := newDir(t, root)
	store(t, d, "a", "x")
	for _, cond := range []storage.Condition{{Absent: true}, {ETag: "other"}} {
		if _, err := d.Put(t.Context(), "a", strings.NewReader("y"), cond); !errors.Is(err, storage.ErrPrecondition) {
			t.Errorf("%+v: got %v", cond, err)
		}
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.Contains(entry.Name(), "tmp") {
			t.Errorf("left %s", entry.Name())
		}
	}
}

func TestObjectsAndDirectoriesDoNotMix(t *testing.T) {
	d := newDir(t, t.TempDir())
	store(t, d, "a/b", "x")
	for _, key := range []string{"a", "a/b/c", "a/b/c/d"} {
		for _, cond := range []storage.Condition{{}, {Absent: true}} {
			_, err := d.Put(t.Context(), key, strings.NewReader("y"), cond)
			if err == nil || errors.Is(err, storage.ErrPrecondition) || errors.Is(err, storage.ErrNotFound) {
				t.Errorf("put %s %+v: got %v, want an error of its own", key, cond, err)
			}
		}
	}
}

func TestUnreadableDirectoryIsNoEmptyList(t *testing.T) {
	root := t.TempDir()
	d := newDir(t, root)
	if err := os.Remove(root); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(root, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if keys, err := listed(t, d, ""); err == nil {
		t.Errorf("listed %v where the root is a file", keys)
	}
}
