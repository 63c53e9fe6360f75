// Package capture turns the commits of a live SQLite database into LTX files
// in a local spool: the first step of the way out. It holds read transactions
// and runs PASSIVE checkpoints, nothing else, so the application never notices
// it. It must not know buckets, keys or levels; what is already on the replica
// it is told as a Tip.
//
// The state directory is a cache of what the bucket proves: files in it are
// not synced one by one. After a power cut it may be found wrong, which is
// noticed by checksums and costs one new base; syncing it would compete with
// the application's own commits for the disk.
package capture

import (
	"fmt"
	"path/filepath"
	"time"
)

// What to do with a database in rollback-journal mode.
const (
	JournalWAL  = "wal"  // switch it to WAL, once, when no transaction is open
	JournalKeep = "keep" // leave it; only a database in WAL mode is replicated
)

// Config is the part of the settings that belongs to one database.
type Config struct {
	// JournalMode says what to do with a database that is not in WAL mode:
	// JournalWAL or JournalKeep.
	JournalMode string `yaml:"journal-mode"`
	// PollInterval is how often the database is looked at when no file event
	// arrives, as on network file systems.
	PollInterval time.Duration `yaml:"poll-interval"`
}

// DefaultConfig returns the settings that apply where nothing is said.
func DefaultConfig() Config {
	return Config{JournalMode: JournalWAL, PollInterval: time.Second}
}

// Validate checks the fields.
func (c Config) Validate() error {
	if c.JournalMode != JournalWAL && c.JournalMode != JournalKeep {
		return fmt.Errorf("journal-mode %q: use %q or %q", c.JournalMode, JournalWAL, JournalKeep)
	}
	if c.PollInterval < 10*time.Millisecond || c.PollInterval > time.Hour {
		return fmt.Errorf("poll-interval %s: use 10ms to 1h", c.PollInterval)
	}
	return nil
}

// StateDir returns the directory that holds what capture knows of the database
// at path: the page sums, the spool and the lock.
func StateDir(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-tidemark")
}
