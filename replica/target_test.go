package replica_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

func (h *history) restoreTo(path string, e replica.Existing) error {
	_, err := replica.Restore(h.t.Context(), h.Replica, replica.RestoreOptions{Path: path, Existing: e})
	return err
}

// place writes files to a directory, each holding its own name.
func place(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o640); err != nil {
			t.Fatal(err)
		}
	}
}

func checkContent(t *testing.T, path string, want []byte) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s holds %d bytes, %v; want %d others", path, len(got), err, len(want))
	}
}

func TestWhatIsThereIsRefusedOrReplaced(t *testing.T) {
	h := newHistory(t, 512)
	h.write(2, 10)
	for _, names := range [][]string{{"app.db"}, {"app.db-wal"}, {"app.db-shm"}, {"app.db-journal"}, {"app.db", "app.db-shm", "app.db-wal"}} {
		dir := t.TempDir()
		path := filepath.Join(dir, "app.db")
		place(t, dir, names...)
		err := h.restoreTo(path, replica.RefuseExisting)
		if !errors.Is(err, replica.ErrTargetExists) || !strings.Contains(err.Error(), filepath.Join(dir, names[0])) {
			t.Errorf("%q: got %v, want ErrTargetExists naming the file", names, err)
		}
		checkOnly(t, dir, names...)
		checkContent(t, filepath.Join(dir, names[0]), []byte(names[0]))
		if err := h.restoreTo(path, replica.ReplaceExisting); err != nil {
			t.Errorf("%q: %v", names, err)
		}
		checkOnly(t, dir, "app.db")
		checkContent(t, path, h.image)
	}
}

func TestNothingIsReplacedWhenTheRestoreFails(t *testing.T) {
	h := newLargeHistory(t, 600)
	dir := t.TempDir()
	place(t, dir, "app.db", "app.db-wal")
	h.bucket.Inject(storagetest.Fault{Op: storagetest.Get, Effect: storagetest.CutBody, Bytes: 1, Keys: "ltx/0/*1.ltx"})
	for range 2 {
		if err := h.restoreTo(filepath.Join(dir, "app.db"), replica.ReplaceExisting); err == nil {
			t.Error("restore over a broken connection succeeded")
		}
		checkOnly(t, dir, "app.db", "app.db-wal")
	}
	if err := h.restoreTo(filepath.Join(dir, "new", "dir", "app.db"), replica.RefuseExisting); err == nil {
		t.Error("restore over a broken connection succeeded")
	}
	checkOnly(t, dir, "app.db", "app.db-wal")
	h.bucket.Heal()
	if err := h.restoreTo(filepath.Join(dir, "new", "dir", "app.db"), replica.RefuseExisting); err != nil {
		t.Error(err)
	}
	checkContent(t, filepath.Join(dir, "new", "dir", "app.db"), h.image)
}

func TestNothingIsLeftWhenTheContextEnds(t *testing.T) {
	h := newLargeHistory(t, 600)
	stop := errors.New("stopped by a signal")
	for _, when := range []string{"fetching", "checking"} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancelCause(t.Context())
		o := replica.RestoreOptions{Path: filepath.Join(dir, "app.db")}
		if when == "checking" {
			o.Check = func(context.Context, string) error { cancel(stop); return nil }
		} else {
			h.bucket.Inject(storagetest.Fault{Op: storagetest.Get, Keys: "ltx/0/*1.ltx", Effect: storagetest.Hang})
			o.Progress = func(int64, int64) { cancel(stop) }
		}
		if _, err := replica.Restore(ctx, h.Replica, o); !errors.Is(err, stop) {
			t.Errorf("%s: got %v, want the cause", when, err)
		}
		h.bucket.Heal()
		checkOnly(t, dir)
	}
}

func TestLeftoversOfKilledRestoresAreRemovedAndLiveOnesKept(t *testing.T) {
	h := newHistory(t, 512)
	h.write(2, 10)
	dir := t.TempDir()
	live, dead := ".app.db.tidemark-restore-a", ".app.db.tidemark-restore-b"
	place(t, dir, live, live+"-wal", dead, dead+"-wal", dead+"-shm", ".app.db.tidemark-restore-c-journal", ".other.db.tidemark-restore-a")
	f, err := os.Open(filepath.Join(dir, live))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := h.restoreTo(filepath.Join(dir, "app.db"), replica.RefuseExisting); err != nil {
		t.Fatal(err)
	}
	checkOnly(t, dir, live, live+"-wal", ".other.db.tidemark-restore-a", "app.db")
}

func TestDatabaseInUseIsNotReplaced(t *testing.T) {
	h := newHistory(t, 512)
	h.write(2, 10)
	dir := t.TempDir()
	path := filepath.Join(dir, "app.db")
	db := testdb.Create(t, path, testdb.Options{})
	testdb.Exec(t, db, "PRAGMA journal_mode=wal", "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)")
	err := h.restoreTo(path, replica.ReplaceExisting)
	if !errors.Is(err, replica.ErrInUse) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want ErrInUse naming the file", err)
	}
	checkOnly(t, dir, "app.db", "app.db-shm", "app.db-wal")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := h.restoreTo(path, replica.ReplaceExisting); err != nil {
		t.Error(err)
	}
	checkContent(t, path, h.image)
}

func TestModeAndOwnerAreThoseOfTheReplacedFileOrTheDirectory(t *testing.T) {
	h := newHistory(t, 512)
	h.write(2, 10)
	dir := t.TempDir()
	path := filepath.Join(dir, "app.db")
	owner := chownIfRoot(t, dir, 1000, 1001)
	check := func(what string, mode fs.FileMode, owner [2]int) {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		stat := info.Sys().(*syscall.Stat_t)
		if got := [2]int{int(stat.Uid), int(stat.Gid)}; info.Mode().Perm() != mode || got != owner {
			t.Errorf("%s has mode %o of %v, want %o of %v", what, info.Mode().Perm(), got, mode, owner)
		}
	}
	umask := syscall.Umask(0o027)
	err := h.restoreTo(path, replica.RefuseExisting)
	syscall.Umask(umask)
	if err != nil {
		t.Fatal(err)
	}
	check("a new file", 0o640, owner)
	owner = chownIfRoot(t, path, 1002, 1003)
	if err := os.Chmod(path, 0o604); err != nil {
		t.Fatal(err)
	}
	if err := h.restoreTo(path, replica.ReplaceExisting); err != nil {
		t.Fatal(err)
	}
	check("a replaced file", 0o604, owner)
}

// chownIfRoot returns the owner that name has then.
func chownIfRoot(t *testing.T, name string, uid, gid int) [2]int {
	t.Helper()
	if os.Geteuid() != 0 {
		return [2]int{os.Getuid(), os.Getgid()}
	}
	if err := os.Chown(name, uid, gid); err != nil {
		t.Fatal(err)
	}
	return [2]int{uid, gid}
}

func TestRestoreFollowsALinkToTheDatabaseItReplaces(t *testing.T) {
	h := newHistory(t, 512)
	h.write(2, 10)
	dir := t.TempDir()
	place(t, dir, "real.db")
	link := filepath.Join(dir, "link.db")
	if err := os.Symlink("real.db", link); err != nil {
		t.Fatal(err)
	}
	if err := h.restoreTo(link, replica.ReplaceExisting); err != nil {
		t.Fatal(err)
	}
	checkContent(t, filepath.Join(dir, "real.db"), h.image)
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if err := h.restoreTo(dir, replica.ReplaceExisting); err == nil {
		t.Error("a directory was replaced")
	}
}
