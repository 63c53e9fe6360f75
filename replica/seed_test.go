package replica_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/replica/apply"
)

func TestSeedLeavesADatabaseAndItsPageSums(t *testing.T) {
	p := newPrimary(t, 1024)
	p.exec(rows(20, 500))
	dir := t.TempDir()
	path := filepath.Join(dir, "sub", "copy.db")
	done, total := int64(0), int64(-1)
	o := replica.RestoreOptions{Path: path, Progress: func(d, of int64) { done, total = d, of }}
	result, err := replica.Seed(t.Context(), p.Replica, dir, o)
	if err != nil || result.Pos != p.pos {
		t.Fatalf("got %+v, %v; want %v", result, err, p.pos)
	}
	if done != total || total != int64(len(p.image)) {
		t.Errorf("progress ended with %d of %d", done, total)
	}
	sums, err := ltx.OpenPageSums(filepath.Join(dir, "sums"))
	if err != nil {
		t.Fatal(err)
	}
	if err := sums.Verify(); err != nil || sums.Pos() != p.pos {
		t.Errorf("page sums at %v, %v; want %v", sums.Pos(), err, p.pos)
	}
	sums.Close()
	if _, err := replica.Seed(t.Context(), p.Replica, dir, o); !errors.Is(err, replica.ErrTargetExists) {
		t.Errorf("a second time: got %v", err)
	}
	if sums, err = ltx.OpenPageSums(filepath.Join(dir, "sums")); err != nil || sums.Pos() != p.pos {
		t.Errorf("the page sums after that are at %v, %v", sums.Pos(), err)
	}
	sums.Close()
	refuse := errors.New("not good enough")
	o.Path = filepath.Join(dir, "other.db")
	o.Check = func(context.Context, string) error { return refuse }
	if _, err := replica.Seed(t.Context(), p.Replica, t.TempDir(), o); !errors.Is(err, refuse) {
		t.Errorf("a check that fails: got %v", err)
	}
	empty := newHistory(t, 512)
	if _, err := replica.Seed(t.Context(), empty.Replica, t.TempDir(), o); !errors.Is(err, replica.ErrNoBackup) {
		t.Errorf("an empty replica: got %v", err)
	}
}

func TestACopyWithoutAPlaceFindsIt(t *testing.T) {
	p := newPrimary(t, 1024)
	p.exec(rows(20, 500))
	f := p.follow()
	image, pos := p.image, p.pos
	p.exec(rows(20, 500))
	if err := f.copy.Close(); err != nil {
		t.Fatal(err)
	}
	// As if it was killed before the place was noted, or lost its state.
	if err := errors.Join(os.WriteFile(f.path, image, 0o644), apply.Record(t.Context(), f.path, f.dir)); err != nil {
		t.Fatal(err)
	}
	f.open()
	if got := f.copy.Pos(); got.TXID != 0 || got.PostApplyChecksum != pos.PostApplyChecksum {
		t.Fatalf("at %v", got)
	}
	f.catchUp()
	if n := f.Status().Reseeds; n != 0 {
		t.Errorf("%d comparisons with a whole state", n)
	}
	f.promote()
}
