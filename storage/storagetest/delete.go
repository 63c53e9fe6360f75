package storagetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/storage"
)

func deleteChecks() []check {
	return []check{
		{"DeleteOfMissingIsNoError", deleteMissing},
		{"DeleteRemovesOnlyWhatIsNamed", deleteNamed},
		{"DeleteTriesEveryKey", deleteTriesAll},
	}
}

func deleteMissing(t *testing.T, b storage.Bucket) {
	if err := b.Delete(t.Context()); err != nil {
		t.Errorf("no keys: %v", err)
	}
	if err := b.Delete(t.Context(), "never", "never/there"); err != nil {
		t.Errorf("empty bucket: %v", err)
	}
	put(t, b, "d/x", "x")
	for range 2 {
		if err := b.Delete(t.Context(), "d/x", "d/y", "e/z", "d/x/below"); err != nil {
			t.Error(err)
		}
	}
	_, _, err := read(t.Context(), b, "d/x", storage.Range{})
	wantError(t, err, storage.ErrNotFound, "d/x")
}

func deleteNamed(t *testing.T, b storage.Bucket) {
	for _, key := range []string{"n/a", "n/ab", "n/a.b", "n/b/c"} {
		put(t, b, key, "x")
	}
	if err := b.Delete(t.Context(), "n/a", "n/b", "n"); err != nil {
		t.Fatal(err)
	}
	want := []string{"n/a.b", "n/ab", "n/b/c"}
	if got := keys(t, b.List(t.Context(), "", "")); !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
}

func deleteTriesAll(t *testing.T, b storage.Bucket) {
	put(t, b, "t/1", "x")
	put(t, b, "t/2", "x")
	err := b.Delete(t.Context(), "t/1", "../bad", "t/2")
	if err == nil || !strings.Contains(err.Error(), "../bad") {
		t.Errorf("error %v does not name ../bad", err)
	}
	if got := keys(t, b.List(t.Context(), "", "")); len(got) != 0 {
		t.Errorf("left %v", got)
	}
}
