package storage_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

func TestUnderKeepsTheContract(t *testing.T) {
	for _, prefix := range []string{"lake", "lake/a/db"} {
		t.Run(strings.ReplaceAll(prefix, "/", " "), func(t *testing.T) {
			storagetest.Suite(t, func(t *testing.T) storage.Bucket {
				return storage.Under(newDir(t, t.TempDir()), prefix)
			})
		})
	}
}

func TestUnderSeesNothingOfItsNeighbors(t *testing.T) {
	all := newDir(t, t.TempDir())
	part := storage.Under(all, "a/db")
	for _, key := range []string{"a/db2/x", "a/db.bak", "a/x", "x"} {
		store(t, all, key, "not of the part")
	}
	if got, err := listed(t, part, ""); err != nil || len(got) != 0 {
		t.Errorf("listed %q, %v; want nothing", got, err)
	}
	object := store(t, part, "0000/1", "x")
	if object.Key != "0000/1" {
		t.Errorf("stored as %q", object.Key)
	}
	if got, err := listed(t, all, "a/db/"); err != nil || !slices.Equal(got, []string{"a/db/0000/1"}) {
		t.Errorf("the whole holds %q, %v", got, err)
	}
	if err := part.Delete(t.Context(), "0000/1", "../x", "2"); err == nil {
		t.Error("deleted what is outside")
	}
	if got, err := listed(t, all, ""); err != nil || len(got) != 4 {
		t.Errorf("in the end there is %q, %v", got, err)
	}
}

func TestUnderOfABadPrefixIsOfNoUse(t *testing.T) {
	all := newDir(t, t.TempDir())
	store(t, all, "x", "x")
	for _, prefix := range []string{"..", "a/../..", "a//b", "."} {
		part := storage.Under(all, prefix)
		if got, err := listed(t, part, ""); err == nil {
			t.Errorf("%q: listed %q", prefix, got)
		}
		if _, _, err := part.Get(t.Context(), "x", storage.Range{}); err == nil {
			t.Errorf("%q: got an object", prefix)
		}
	}
}

// loggable is a bucket with a log value, as that of S3 has one.
type loggable struct{ storage.Bucket }

func (loggable) LogValue() slog.Value {
	return slog.GroupValue(slog.String("bucket", "b"), slog.String("prefix", "lake"))
}

func TestUnderIsNamedByItsWholeURL(t *testing.T) {
	dir := newDir(t, t.TempDir())
	part := storage.Under(storage.Under(dir, "/a/"), "b")
	if want := dir.String() + "/a/b"; part.String() != want {
		t.Errorf("got %s, want %s", part, want)
	}
	if same := storage.Under(dir, "/"); same != storage.Bucket(dir) {
		t.Errorf("without a prefix: got %v, want the bucket itself", same)
	}
	value := storage.Under(storage.Observed(loggable{dir}, nil), "db").(slog.LogValuer).LogValue()
	if got := value.String(); got != "[bucket=b prefix=lake/db]" {
		t.Errorf("in the log it is %s", got)
	}
	if _, _, err := part.Get(t.Context(), "none", storage.Range{}); err == nil || !strings.Contains(err.Error(), part.String()+"/none") {
		t.Errorf("got %v, want the whole URL", err)
	}
}
