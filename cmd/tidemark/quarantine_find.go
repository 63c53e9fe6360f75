package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/quarantine"
)

// quarantined is a database and where its quarantine is.
type quarantined struct{ database, dir string }

func quarantineOf(database string) quarantined {
	return quarantined{database, quarantine.Dir(capture.StateDir(database))}
}

// quarantinesOf finds the database of the argument, or those of the
// configuration.
func quarantinesOf(c *cli.Context, args []string) ([]quarantined, error) {
	if len(args) == 1 {
		q, err := quarantineAt(args[0])
		return []quarantined{q}, err
	}
	cfg, err := loadConfig(c)
	if err != nil {
		return nil, err
	}
	var all []quarantined
	for _, d := range cfg.Databases {
		if d.Path != "" {
			all = append(all, quarantineOf(d.Path))
		}
	}
	return all, nil
}

// quarantineAt finds the quarantine of one database. What was set aside may be
// all that is left of it.
func quarantineAt(arg string) (quarantined, error) {
	if arg == "" {
		return quarantined{}, usagef("an argument is empty")
	}
	path, err := expandHome(arg)
	if err != nil {
		return quarantined{}, err
	}
	path = resolved(path)
	if state := capture.StateDir(path); !exists(path) && !exists(state) {
		return quarantined{}, fmt.Errorf("there is neither a database %s nor its state directory %s", path, state)
	}
	return quarantineOf(path), nil
}

// entryOf finds the entry that the arguments DB and ID name. Without an ID it
// is the only one; the start of an ID is enough where it fits to one alone.
func entryOf(args []string) (quarantined, quarantine.Entry, error) {
	q, err := quarantineAt(args[0])
	if err != nil {
		return q, quarantine.Entry{}, err
	}
	entries, err := quarantine.List(q.dir)
	if err != nil {
		return q, quarantine.Entry{}, err
	}
	if len(args) > 1 {
		for _, e := range entries {
			if e.ID == args[1] {
				return q, e, nil
			}
		}
		entries = slices.DeleteFunc(entries, func(e quarantine.Entry) bool { return !strings.HasPrefix(e.ID, args[1]) })
	}
	switch {
	case len(entries) == 1 && (len(args) == 1 || args[1] != ""):
		return q, entries[0], nil
	case len(entries) == 0 && len(args) == 1:
		return q, quarantine.Entry{}, fmt.Errorf("nothing of %s is set aside", q.database)
	case len(entries) == 0:
		return q, quarantine.Entry{}, fmt.Errorf("%s of %s: %w; tidemark quarantine list shows all", args[1], q.database, quarantine.ErrUnknown)
	}
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	return q, quarantine.Entry{}, usagef("say which entry of %s is meant: %s", q.database, strings.Join(ids, ", "))
}
