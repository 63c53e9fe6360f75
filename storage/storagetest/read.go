package storagetest

import (
	"context"
	"errors"
	"testing"

	"github.com/tidemark-io/tidemark/storage"
)

func readChecks() []check {
	return []check{
		{"MissingKeyIsNotFound", missingKey},
		{"RangesAreCutAtTheEnd", ranges},
		{"NegativeRangesAreRefused", negativeRanges},
		{"GetTellsWhatPutStored", sameObject},
		{"CanceledRequestsDoNothing", canceled},
	}
}

func missingKey(t *testing.T, b storage.Bucket) {
	_, _, err := read(t.Context(), b, "no/such/key", storage.Range{})
	wantError(t, err, storage.ErrNotFound, "no/such/key")
	put(t, b, "dir/file", "x")
	_, _, err = read(t.Context(), b, "dir", storage.Range{})
	wantError(t, err, storage.ErrNotFound, "dir")
	_, _, err = read(t.Context(), b, "dir/file/below", storage.Range{})
	wantError(t, err, storage.ErrNotFound, "dir/file/below")
}

func ranges(t *testing.T, b storage.Bucket) {
	put(t, b, "r", "0123456789")
	put(t, b, "empty", "")
	for _, c := range []struct {
		key  string
		part storage.Range
		want string
		size int64
	}{
		{"r", storage.Range{}, "0123456789", 10},
		{"r", storage.Range{Offset: 3}, "3456789", 10},
		{"r", storage.Range{Length: 1}, "0", 10},
		{"r", storage.Range{Offset: 3, Length: 4}, "3456", 10},
		{"r", storage.Range{Offset: 8, Length: 100}, "89", 10},
		{"r", storage.Range{Offset: 9, Length: 1}, "9", 10},
		{"r", storage.Range{Offset: 10}, "", 10},
		{"r", storage.Range{Offset: 10, Length: 5}, "", 10},
		{"r", storage.Range{Offset: 1 << 40, Length: 5}, "", 10},
		{"r", storage.Range{Offset: 5, Length: 1<<63 - 1}, "56789", 10},
		{"empty", storage.Range{}, "", 0},
		{"empty", storage.Range{Length: 7}, "", 0},
		{"empty", storage.Range{Offset: 7}, "", 0},
	} {
		got, object, err := read(t.Context(), b, c.key, c.part)
		if err != nil {
			t.Errorf("%s %+v: %v", c.key, c.part, err)
			continue
		}
		if got != c.want || object.Size != c.size {
			t.Errorf("%s %+v: got %q of %d bytes, want %q of %d", c.key, c.part, got, object.Size, c.want, c.size)
		}
	}
	_, _, err := read(t.Context(), b, "none", storage.Range{Offset: 5, Length: 5})
	wantError(t, err, storage.ErrNotFound, "none")
}

func negativeRanges(t *testing.T, b storage.Bucket) {
	put(t, b, "r", "0123456789")
	for _, part := range []storage.Range{{Offset: -1}, {Length: -1}, {Offset: -5, Length: 3}} {
		if got, _, err := read(t.Context(), b, "r", part); err == nil {
			t.Errorf("%+v: got %q, want an error", part, got)
		}
	}
}

func sameObject(t *testing.T, b storage.Bucket) {
	stored := put(t, b, "a/o", "content")
	if stored.Key != "a/o" || stored.Size != 7 || stored.ETag == "" {
		t.Errorf("put returned %+v", stored)
	}
	got := wantContent(t, b, "a/o", "content")
	if got.ETag != stored.ETag {
		t.Errorf("ETag: get says %s, put said %s", got.ETag, stored.ETag)
	}
	if got.ModTime.IsZero() {
		t.Error("get says no time of storing")
	}
	for listed, err := range b.List(t.Context(), "a/", "") {
		if err != nil {
			t.Fatal(err)
		}
		if listed.Key != "a/o" || listed.Size != 7 || listed.ModTime.IsZero() {
			t.Errorf("list says %+v", listed)
		}
		if listed.ETag != "" && listed.ETag != stored.ETag {
			t.Errorf("ETag: list says %s, put said %s", listed.ETag, stored.ETag)
		}
	}
}

func canceled(t *testing.T, b storage.Bucket) {
	put(t, b, "kept", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := read(ctx, b, "kept", storage.Range{})
	wantError(t, err, context.Canceled, "kept")
	_, err = b.Put(ctx, "new", newBody("x"), storage.Condition{})
	wantError(t, err, context.Canceled, "new")
	if err := b.Delete(ctx, "kept"); !errors.Is(err, context.Canceled) {
		t.Errorf("delete: got %v, want context.Canceled", err)
	}
	var last error
	for _, err := range b.List(ctx, "", "") {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("list: got %v, want context.Canceled", last)
	}
	if got := keys(t, b.List(t.Context(), "", "")); len(got) != 1 || got[0] != "kept" {
		t.Errorf("keys afterwards: %v", got)
	}
}
