// Package storagetest executes the contract of storage.Bucket and offers a
// bucket in bad weather. Every backend runs Suite; tests of what stands above
// a bucket wrap a real one in Faulty.
package storagetest

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/storage"
)

// Suite runs the whole contract. Open returns an empty bucket each time it is
// called; what it opens is closed by the cleanup of the test.
func Suite(t *testing.T, open func(t *testing.T) storage.Bucket) {
	for _, group := range [][]check{readChecks(), writeChecks(), listChecks(), deleteChecks(), hostileChecks(), raceChecks()} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				c.run(t, open(t))
			})
		}
	}
}

// check is one clause of the contract.
type check struct {
	name string
	run  func(t *testing.T, b storage.Bucket)
}

func put(t *testing.T, b storage.Bucket, key, content string) storage.Object {
	t.Helper()
	object, err := b.Put(t.Context(), key, strings.NewReader(content), storage.Condition{})
	if err != nil {
		t.Fatalf("put: %v", err)
	}
	return object
}

func read(ctx context.Context, b storage.Bucket, key string, part storage.Range) (string, storage.Object, error) {
	body, object, err := b.Get(ctx, key, part)
	if err != nil {
		return "", object, err
	}
	content, err := io.ReadAll(body)
	return string(content), object, errors.Join(err, body.Close())
}

// wantContent fails the test unless key holds content.
func wantContent(t *testing.T, b storage.Bucket, key, content string) storage.Object {
	t.Helper()
	got, object, err := read(t.Context(), b, key, storage.Range{})
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	if got != content {
		t.Fatalf("content of %s: got %.80q, want %.80q", key, got, content)
	}
	if object.Size != int64(len(content)) || object.Key != key {
		t.Fatalf("object of %s: got key %q size %d, want size %d", key, object.Key, object.Size, len(content))
	}
	return object
}

// wantError fails the test unless err is target and names key.
func wantError(t *testing.T, err, target error, key string) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error: got %v, want one that wraps %q", err, target)
	}
	if !strings.Contains(err.Error(), key) {
		t.Fatalf("error %q does not name the key %q", err, key)
	}
}

func keys(t *testing.T, list iter.Seq2[storage.Object, error]) []string {
	t.Helper()
	var all []string
	for object, err := range list {
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		all = append(all, object.Key)
	}
	return all
}
