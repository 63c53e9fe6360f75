package main

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"
)

// kind is the key that says what d is.
func (d Database) kind() string {
	if d.Dir != "" {
		return "dir"
	}
	return "path"
}

// searched tells directories apart that are searched for different files.
func (d Database) searched() string {
	if d.Dir == "" {
		return ""
	}
	return d.Dir + " with pattern " + d.Pattern
}

// validateDir checks that d names either a file or a directory, and the keys
// that belong to the latter. Its errors begin as those of validate.
func (d Database) validateDir() error {
	switch {
	case d.Dir == "" && d.Pattern+d.Path == "":
		return errors.New(".path: it is empty; name the database file")
	case d.Dir == "" && (d.Pattern != "" || d.Recursive || d.Watch):
		return errors.New(".dir: it is missing; pattern, recursive and watch belong to the databases in a directory")
	case d.Dir == "":
		return nil
	case d.Path != "":
		return errors.New(".dir: path is given too; keep one of them")
	case d.Pattern == "":
		return errors.New(".pattern: it is missing; say which files in the directory are databases, such as \"*.db\"")
	case d.RestoreIfMissing:
		return errors.New(".restore-if-db-not-exists: the databases of a directory are those that exist; remove the key, " +
			"or list the database with path")
	}
	if _, err := filepath.Match(d.Pattern, "x"); err != nil || strings.ContainsRune(d.Pattern, '/') {
		return fmt.Errorf(".pattern: %q is no pattern for the names of files; use one such as \"*.db\"", d.Pattern)
	}
	return nil
}

// member is the database at a path relative to the directory d: its replica is
// kept at the same path relative to that of d.
func (d Database) member(rel string) (Database, error) {
	d.Path = filepath.Join(d.Dir, rel)
	d.Dir, d.Pattern, d.Recursive, d.Watch = "", "", false, false
	if d.Replica.Type == typeS3 {
		d.Replica.base = d.Replica.S3.Prefix
		d.Replica.S3.Prefix = path.Join(d.Replica.S3.Prefix, filepath.ToSlash(rel))
		return d, nil
	}
	l, err := d.Replica.locate()
	if err != nil {
		return d, err
	}
	d.Replica.S3.Prefix, d.Replica.base = "", l.dir
	d.Replica.URL = (&url.URL{Scheme: typeFile, Path: filepath.Join(l.dir, rel)}).String()
	return d, nil
}

// where is the place of a valid replica, for the log.
func (r Replica) where() string {
	l, err := r.locate()
	if err != nil {
		return withoutQuery(r.URL)
	}
	return l.String()
}

// key tells the places of valid replicas apart.
func (r Replica) key() string {
	l, err := r.locate()
	if err != nil {
		return withoutQuery(r.URL)
	}
	return l.key()
}

// finds tells whether a file at an absolute path would be found in the
// directory d, and its path relative to it.
func (d Database) finds(path string) (rel string, ok bool) {
	if d.Dir == "" {
		return "", false
	}
	rel, err := filepath.Rel(d.Dir, path)
	if err != nil || !filepath.IsLocal(rel) || !d.Recursive && rel != filepath.Base(rel) {
		return "", false
	}
	ok, err = filepath.Match(d.Pattern, filepath.Base(rel))
	return rel, ok && err == nil
}

// database returns the settings of the database at path.
func (c Config) database(path string) (Database, error) {
	want, err := filepath.Abs(path)
	if err != nil {
		return Database{}, err
	}
	for _, d := range c.Databases {
		if d.Path != "" && sameFile(d.Path, want) {
			return d, nil
		}
	}
	for _, d := range c.Databases {
		if rel, ok := d.finds(resolved(want)); ok {
			return d.member(rel)
		}
	}
	return Database{}, fmt.Errorf("database %s is not in the configuration; add it under dbs: or give the URL of its replica", want)
}
