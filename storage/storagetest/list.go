package storagetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/storage"
)

func listChecks() []check {
	return []check{
		{"EmptyBucketListsNothing", listEmpty},
		{"KeysComeInByteOrder", listOrder},
		{"PrefixIsPlainText", listPrefix},
		{"ListSeesWritesAndDeletesAtOnce", listFresh},
		{"ManyKeysAreListedInPages", listMany},
		{"ListingCanStopEarly", listStop},
	}
}

func listEmpty(t *testing.T, b storage.Bucket) {
	for _, prefix := range []string{"", "a", "a/", "a/b/c/"} {
		if got := keys(t, b.List(t.Context(), prefix, "")); len(got) != 0 {
			t.Errorf("%q: got %v", prefix, got)
		}
	}
}

// tree sorts differently by key and by directory entry.
func tree() []string {
	return []string{
		"a/b.x", "a/b/1", "a/b/2", "a/b0", "a/bb/c/d", "a-1", "a.b/c", "a0",
		"B", "z", "a/db/x", "a/db2/x", "a/db.bak", "a/é", "a/~",
	}
}

func listOrder(t *testing.T, b storage.Bucket) {
	want := tree()
	for _, key := range want {
		put(t, b, key, key)
	}
	slices.Sort(want)
	if got := keys(t, b.List(t.Context(), "", "")); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for _, after := range append(tree(), "a", "a/", "a/b", "a/b/", "a/c", "0", "zz", "a/db/x0", "a.") {
		rest := slices.DeleteFunc(slices.Clone(want), func(key string) bool { return key <= after })
		if got := keys(t, b.List(t.Context(), "", after)); !slices.Equal(got, rest) {
			t.Errorf("after %q: got  %q\nwant %q", after, got, rest)
		}
	}
}

func listPrefix(t *testing.T, b storage.Bucket) {
	all := tree()
	for _, key := range all {
		put(t, b, key, key)
	}
	slices.Sort(all)
	for _, c := range []struct{ prefix, after string }{
		{"a", ""}, {"a/", ""}, {"a/b", ""}, {"a/b/", ""}, {"a/db", ""}, {"a/db/", ""}, {"a/db/x", ""}, {"a/db/xy", ""},
		{"a/b/1/", ""}, {"nothing", ""}, {"no/thing/", ""}, {"z", ""}, {"a.b/", ""}, {"a.", ""}, {"a/\xc3\xa9", ""},
		{"a/", "a/b/2"}, {"a/db", "a/db.bak"}, {"a/db/", "a/db/x"}, {"a/", "B"}, {"a/", "z"}, {"a/b", "a/b"},
	} {
		want := slices.DeleteFunc(slices.Clone(all), func(key string) bool {
			return !strings.HasPrefix(key, c.prefix) || key <= c.after
		})
		if got := keys(t, b.List(t.Context(), c.prefix, c.after)); !slices.Equal(got, want) {
			t.Errorf("prefix %q after %q: got  %q\nwant %q", c.prefix, c.after, got, want)
		}
	}
}

func listFresh(t *testing.T, b storage.Bucket) {
	for i := range 20 {
		key := fmt.Sprintf("f/%02d", i)
		put(t, b, key, "x")
		if got := keys(t, b.List(t.Context(), "f/", "")); len(got) != 1 || got[0] != key {
			t.Fatalf("after put of %s: listed %v", key, got)
		}
		if err := b.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if got := keys(t, b.List(t.Context(), "f/", "")); len(got) != 0 {
			t.Fatalf("after delete of %s: listed %v", key, got)
		}
	}
}

func listMany(t *testing.T, b storage.Bucket) {
	const n = 1203 // more than a page of S3
	want := make([]string, n)
	var group errgroup.Group
	group.SetLimit(16)
	for i := range want {
		want[i] = fmt.Sprintf("m/%04d", i)
		group.Go(func() error {
			_, err := b.Put(t.Context(), want[i], newBody("x"), storage.Condition{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	put(t, b, "m2/other", "x")
	for _, skip := range []int{0, 1, 203, 1000, 1202, n} {
		after := ""
		if skip > 0 {
			after = want[skip-1]
		}
		if got := keys(t, b.List(t.Context(), "m/", after)); !slices.Equal(got, want[skip:]) {
			t.Errorf("after %q: got %d keys, want %d", after, len(got), n-skip)
		}
	}
	if err := b.Delete(t.Context(), want...); err != nil {
		t.Fatalf("delete %d keys: %v", n, err)
	}
	if got := keys(t, b.List(t.Context(), "", "")); !slices.Equal(got, []string{"m2/other"}) {
		t.Errorf("after delete of all m/: listed %d keys", len(got))
	}
}

func listStop(t *testing.T, b storage.Bucket) {
	for _, key := range []string{"p/1", "p/2", "p/3/4", "p/3/5"} {
		put(t, b, key, "x")
	}
	var got []string
	for object, err := range b.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, object.Key); len(got) == 3 {
			break
		}
	}
	if want := []string{"p/1", "p/2", "p/3/4"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
