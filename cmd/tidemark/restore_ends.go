package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/replica"
)

// restoreEnds returns from where and to where.
func restoreEnds(c *cli.Context, arg string) (location, string, error) {
	place, d, err := replicaOf(c, arg)
	if err != nil {
		return location{}, "", err
	}
	target := cmp.Or(c.String("o"), d.Path)
	if target == "" {
		return location{}, "", usagef("-o PATH is missing: where to write the database from %s", withoutQuery(arg))
	}
	return place, target, nil
}

// replicaOf finds the replica that an argument names: a URL, a directory, or a
// database of the configuration file, which is returned too then.
func replicaOf(c *cli.Context, arg string) (location, Database, error) {
	isURL := looksLikeURL(arg)
	switch {
	case isURL && explicitConfig(c):
		return location{}, Database{}, usagef("a URL is given as well as -config; with -config give the path of a database")
	case !isURL && (explicitConfig(c) || !isDirectory(arg)):
		d, err := configuredDatabase(c, arg)
		if err != nil {
			return location{}, d, err
		}
		place, err := d.Replica.locate()
		return place, d, err
	}
	d, err := singleDatabase("database", arg)
	if err != nil {
		return location{}, Database{}, err
	}
	place, err := d.Replica.locate()
	return place, Database{}, err
}

// configuredDatabase looks a database up in the configuration file.
func configuredDatabase(c *cli.Context, arg string) (Database, error) {
	if arg == "" {
		return Database{}, usagef("an argument is empty")
	}
	if path, there := configPath(c); !there {
		return Database{}, usagef("%s is neither a URL nor a directory that exists, and there is no configuration file %s to look it up; "+
			"give the URL of the replica, or -config FILE", withoutQuery(arg), path)
	}
	cfg, err := loadConfig(c)
	if err != nil {
		return Database{}, err
	}
	return cfg.database(arg)
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// doubt takes the certainty from an error that says there is no backup, when
// the place is a directory of which not even the parent exists: more likely a
// disk is not mounted.
func (l location) doubt(err error) error {
	if l.dir == "" || !errors.Is(err, replica.ErrNoBackup) {
		return err
	}
	for _, dir := range []string{l.dir, filepath.Dir(l.dir)} {
		switch _, statErr := os.Stat(dir); {
		case statErr == nil:
			return err
		case !errors.Is(statErr, fs.ErrNotExist):
			return statErr
		}
	}
	return fmt.Errorf("%s: neither it nor the directory above it exists, so it is not certain that there is no backup; "+
		"mount the disk, correct the path, or make %s", l, filepath.Dir(l.dir))
}
