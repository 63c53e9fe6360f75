package storagetest

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/storage"
)

func writeChecks() []check {
	return []check{
		{"CreateOnlyCreatesOnce", createOnce},
		{"UnconditionalPutOverwrites", overwrite},
		{"SwapNeedsTheRightETag", swap},
		{"SwapOfAbsentKeyStoresNothing", swapAbsent},
		{"EmptyBodyIsAnObject", emptyBody},
		{"BodyIsStoredFromItsStart", offsetBody},
		{"BrokenBodyStoresNothing", brokenBody},
		{"BrokenBodyLeavesTheOldObject", brokenOverwrite},
		{"OpenReaderKeepsItsVersion", openReader},
		{"ContradictingConditionIsRefused", bothConditions},
	}
}

func createOnce(t *testing.T, b storage.Bucket) {
	absent := storage.Condition{Absent: true}
	if _, err := b.Put(t.Context(), "d/once", newBody("first"), absent); err != nil {
		t.Fatal(err)
	}
	_, err := b.Put(t.Context(), "d/once", newBody("second"), absent)
	wantError(t, err, storage.ErrPrecondition, "d/once")
	wantContent(t, b, "d/once", "first")
	if err := b.Delete(t.Context(), "d/once"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(t.Context(), "d/once", newBody("third"), absent); err != nil {
		t.Fatalf("create after delete: %v", err)
	}
	wantContent(t, b, "d/once", "third")
}

func overwrite(t *testing.T, b storage.Bucket) {
	one := put(t, b, "o", "a longer first version")
	two := put(t, b, "o", "second")
	if one.ETag == two.ETag {
		t.Errorf("both versions have the ETag %s", one.ETag)
	}
	wantContent(t, b, "o", "second")
}

func swap(t *testing.T, b storage.Bucket) {
	one := put(t, b, "s/lease", "one")
	two, err := b.Put(t.Context(), "s/lease", newBody("two"), storage.Condition{ETag: one.ETag})
	if err != nil {
		t.Fatalf("swap with the right ETag: %v", err)
	}
	for _, wrong := range []string{one.ETag, `"0123456789abcdef0123456789abcdef"`, "x"} {
		_, err = b.Put(t.Context(), "s/lease", newBody("no"), storage.Condition{ETag: wrong})
		wantError(t, err, storage.ErrPrecondition, "s/lease")
	}
	if got := wantContent(t, b, "s/lease", "two"); got.ETag != two.ETag {
		t.Errorf("ETag after swap: got %s, want %s", got.ETag, two.ETag)
	}
	if _, err := b.Put(t.Context(), "s/lease", newBody("six"), storage.Condition{ETag: two.ETag}); err != nil {
		t.Fatalf("second swap: %v", err)
	}
}

func swapAbsent(t *testing.T, b storage.Bucket) {
	gone := put(t, b, "s/gone", "x")
	if err := b.Delete(t.Context(), "s/gone"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"s/gone", "t/never"} {
		_, err := b.Put(t.Context(), key, newBody("no"), storage.Condition{ETag: gone.ETag})
		wantError(t, err, storage.ErrPrecondition, key)
		_, _, err = read(t.Context(), b, key, storage.Range{})
		wantError(t, err, storage.ErrNotFound, key)
	}
	if got := keys(t, b.List(t.Context(), "", "")); len(got) != 0 {
		t.Errorf("stored %v", got)
	}
}

func emptyBody(t *testing.T, b storage.Bucket) {
	if _, err := b.Put(t.Context(), "e", newBody(""), storage.Condition{Absent: true}); err != nil {
		t.Fatal(err)
	}
	wantContent(t, b, "e", "")
	if got := keys(t, b.List(t.Context(), "", "")); len(got) != 1 {
		t.Errorf("listed %v", got)
	}
}

func offsetBody(t *testing.T, b storage.Bucket) {
	for _, offset := range []int64{3, 8} {
		body := newBody("complete")
		if _, err := body.Seek(offset, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Put(t.Context(), "off", body, storage.Condition{}); err != nil {
			t.Fatal(err)
		}
		wantContent(t, b, "off", "complete")
	}
}

func brokenBody(t *testing.T, b storage.Bucket) {
	body := &failingBody{ReadSeeker: newBody(strings.Repeat("x", 100_000)), after: 70_000}
	_, err := b.Put(t.Context(), "broken", body, storage.Condition{})
	if !errors.Is(err, errBody) {
		t.Errorf("put: got %v, want the error of the body", err)
	}
	_, _, err = read(t.Context(), b, "broken", storage.Range{})
	wantError(t, err, storage.ErrNotFound, "broken")
	if got := keys(t, b.List(t.Context(), "", "")); len(got) != 0 {
		t.Errorf("listed %v", got)
	}
}

func brokenOverwrite(t *testing.T, b storage.Bucket) {
	put(t, b, "kept", "old")
	body := &failingBody{ReadSeeker: newBody(strings.Repeat("x", 100_000)), after: 70_000}
	if _, err := b.Put(t.Context(), "kept", body, storage.Condition{}); err == nil {
		t.Error("put of a broken body succeeded")
	}
	wantContent(t, b, "kept", "old")
}

// openReader uses a body no buffer holds whole. A bucket may serve the old
// version or fail, but never mix the two.
func openReader(t *testing.T, b storage.Bucket) {
	old := strings.Repeat("o", 8<<20)
	put(t, b, "v", old)
	body, _, err := b.Get(t.Context(), "v", storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	head := make([]byte, 4096)
	if _, err := io.ReadFull(body, head); err != nil {
		t.Fatal(err)
	}
	put(t, b, "v", strings.Repeat("n", 8<<20))
	rest, err := io.ReadAll(body)
	if got := string(head) + string(rest); err == nil && got != old {
		t.Errorf("reader got %d bytes that are not the version it opened", len(got))
	}
}

func bothConditions(t *testing.T, b storage.Bucket) {
	object := put(t, b, "both", "x")
	cond := storage.Condition{Absent: true, ETag: object.ETag}
	if _, err := b.Put(context.WithoutCancel(t.Context()), "both", newBody("y"), cond); err == nil {
		t.Error("put with two conditions succeeded")
	}
	wantContent(t, b, "both", "x")
}
