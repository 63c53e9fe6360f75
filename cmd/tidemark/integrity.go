package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	_ "github.com/mattn/go-sqlite3" // the driver
)

// How a restored database is checked.
const (
	checkNone  = "none"
	checkQuick = "quick"
	checkFull  = "full"
)

// integrityCheck returns the check of a name; nil for none.
func integrityCheck(name string) (func(context.Context, string) error, error) {
	pragma := map[string]string{checkNone: "", checkQuick: "quick_check", checkFull: "integrity_check"}
	chosen, ok := pragma[name]
	if !ok {
		return nil, usagef("-integrity-check %q: use none, quick or full", name)
	}
	if chosen == "" {
		return nil, nil
	}
	return func(ctx context.Context, path string) error { return checkIntegrity(ctx, path, chosen) }, nil
}

// checkIntegrity lets SQLite look at a database that nobody writes. Nothing is
// made beside it.
func checkIntegrity(ctx context.Context, path, pragma string) error {
	name := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: "mode=ro&immutable=1"}
	db, err := sql.Open("sqlite3", name.String())
	if err != nil {
		return fmt.Errorf("%s: %w", pragma, err)
	}
	var answer string
	err = db.QueryRowContext(ctx, "PRAGMA "+pragma+"(1)").Scan(&answer)
	if err == nil && answer != "ok" {
		err = errors.New(answer)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("%s: %w", pragma, err)
	}
	return nil
}
