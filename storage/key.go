package storage

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxKey is the longest key S3 takes, in bytes; a bucket's own prefix counts.
const maxKey = 1024

// CheckKey refuses a key that could leave the bucket's prefix or that some
// bucket could not keep: keys are relative slash paths of valid UTF-8 without
// empty, "." or ".." elements.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("key is empty")
	case len(key) > maxKey:
		return fmt.Errorf("key %.60q...: longer than %d bytes", key, maxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("key %q: not valid UTF-8", key)
	case strings.IndexByte(key, 0) >= 0:
		return fmt.Errorf("key %q: has a NUL byte", key)
	case strings.HasPrefix(key, "/"):
		return fmt.Errorf("key %q: absolute; keys are relative to the bucket", key)
	}
	for element := range strings.SplitSeq(key, "/") {
		switch element {
		case "":
			return fmt.Errorf("key %q: has an empty element", key)
		case ".", "..":
			return fmt.Errorf("key %q: has a %q element", key, element)
		}
	}
	return nil
}

// CheckPrefix refuses a list prefix no valid key can start with. The part
// after its last slash may be the beginning of any name.
func CheckPrefix(prefix string) error {
	dir, name := splitKey(prefix)
	if dir != "" || strings.HasPrefix(prefix, "/") {
		if err := CheckKey(dir); err != nil {
			return fmt.Errorf("list prefix %q: %w", prefix, err)
		}
	}
	if strings.IndexByte(name, 0) >= 0 || !utf8.ValidString(name) {
		return fmt.Errorf("list prefix %q: not a valid name", prefix)
	}
	return nil
}

// splitKey cuts a key at its last slash; neither part keeps it.
func splitKey(key string) (dir, name string) {
	if i := strings.LastIndexByte(key, '/'); i >= 0 {
		return key[:i], key[i+1:]
	}
	return "", key
}
