package storagetest

import (
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/storage"
)

func hostileChecks() []check {
	return []check{
		{"HostileKeysAreRefused", hostileKeys},
		{"HostilePrefixesAreRefused", hostilePrefixes},
		{"UnusualKeysWork", unusualKeys},
	}
}

func hostile() []string {
	return []string{
		"", "/", "/etc/passwd", "..", "../x", "a/../x", "a/../../x", "a/..", ".", "./a", "a/./b", "a/.",
		"a//b", "a/", "//", "a\x00b", "\x00", "\xff\xfe", strings.Repeat("k", 1025),
	}
}

func hostileKeys(t *testing.T, b storage.Bucket) {
	put(t, b, "x", "kept")
	for _, key := range hostile() {
		if _, _, err := read(t.Context(), b, key, storage.Range{}); err == nil {
			t.Errorf("get %.40q succeeded", key)
		}
		if _, err := b.Put(t.Context(), key, newBody("bad"), storage.Condition{}); err == nil {
			t.Errorf("put %.40q succeeded", key)
		}
		if err := b.Delete(t.Context(), key); err == nil {
			t.Errorf("delete %.40q succeeded", key)
		}
	}
	if got := keys(t, b.List(t.Context(), "", "")); len(got) != 1 {
		t.Errorf("keys afterwards: %q", got)
	}
	wantContent(t, b, "x", "kept")
}

func hostilePrefixes(t *testing.T, b storage.Bucket) {
	put(t, b, "x/y", "x")
	for _, prefix := range []string{"/", "../", "a/../", "a//", "./", "//", "a\x00", "../../etc/pass"} {
		var last error
		for object, err := range b.List(t.Context(), prefix, "") {
			if last = err; err == nil {
				t.Errorf("prefix %q listed %q", prefix, object.Key)
			}
		}
		if last == nil {
			t.Errorf("prefix %q is no error", prefix)
		}
	}
}

func unusualKeys(t *testing.T, b storage.Bucket) {
	for _, key := range []string{
		"...", "a b/c d", "per%cent/%2e%2e/x", "plus+and&=?#;", "quo\"te'<>`", "back\\slash", "é/日本/🌊", "~tilde", "a..b/..c", "tab\there", ".hidden/x",
	} {
		put(t, b, key, "content of "+key)
		wantContent(t, b, key, "content of "+key)
		if got := keys(t, b.List(t.Context(), key, "")); len(got) != 1 || got[0] != key {
			t.Errorf("list of %q: got %q", key, got)
		}
		if err := b.Delete(t.Context(), key); err != nil {
			t.Errorf("delete %q: %v", key, err)
		}
	}
	if got := keys(t, b.List(t.Context(), "", "")); len(got) != 0 {
		t.Errorf("left %q", got)
	}
}
