package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheReplicaOfAFoundDatabaseIsAtItsPathBelow(t *testing.T) {
	dir := t.TempDir()
	for replica, want := range map[string]string{
		"{url: s3://bucket/tenants}": "s3://bucket/tenants/a/b%20c.db",
		"{url: s3://bucket}":         "s3://bucket/a/b%20c.db",
		"{url: file:///backup}":      "file:///backup/a/b%20c.db",
		"{path: /backup/}":           "file:///backup/a/b%20c.db",
		`{url: "s3://bucket/p?endpoint=http://127.0.0.1:1&region=r"}`: "s3://bucket/p/a/b%20c.db",
	} {
		c, err := parseConfig([]byte("dbs: [{dir: "+dir+", pattern: '*.db', recursive: true, replica: "+replica+"}]"), nil)
		if err != nil {
			t.Errorf("%s: %v", replica, err)
			continue
		}
		d, err := c.database(filepath.Join(dir, "a", "b c.db"))
		if err != nil {
			t.Errorf("%s: %v", replica, err)
			continue
		}
		l, err := d.Replica.locate()
		if err != nil || l.String() != want {
			t.Errorf("%s: got %s, %v; want %s", replica, l, err, want)
		}
	}
}

func TestDatabasesOfADirectoryAreKnownByTheirPath(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"deep/a.db", "a.db"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string][2]bool{ // not recursive, recursive
		"a.db": {true, true}, "deep/a.db": {false, true}, "a.sqlite": {}, "../a.db": {}, ".": {},
	} {
		for i, recursive := range []string{"false", "true"} {
			c, err := parseConfig([]byte("dbs: [{dir: "+dir+", pattern: '*.db', recursive: "+recursive+", replica: {url: file:///b}}]"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.database(filepath.Join(dir, path)); (err == nil) != want[i] {
				t.Errorf("%s, recursive %s: got %v", path, recursive, err)
			}
		}
	}
}
