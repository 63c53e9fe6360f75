package main

import (
	"testing"

	"github.com/mattn/go-sqlite3"
)

// SQLite before 3.51.3 may lose committed pages when one process starts the
// WAL over while another one checkpoints.
func TestBundledSQLiteHasNoRaceAtWALReset(t *testing.T) {
	if version, number, _ := sqlite3.Version(); number < 3_051_003 {
		t.Fatalf("SQLite %s is older than 3.51.3", version)
	}
}
