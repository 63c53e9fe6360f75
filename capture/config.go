// Package capture turns the commits of a live SQLite database into LTX files
// in a local spool: the first step of the way out. It holds read transactions
// and runs PASSIVE checkpoints, so the application never notices it. Two
// exceptions can be forbidden: switching a rollback-journal database to WAL,
// and holding the write lock for an instant when the WAL has passed its limit.
// It must not know buckets, keys or levels; what is already on the replica
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

	"github.com/dustin/go-humanize"
)

// What to do with a database in rollback-journal mode.
const (
	JournalWAL  = "wal"  // switch it to WAL, once, when no transaction is open
	JournalKeep = "keep" // leave it, and capture it by comparing all of it after each commit
)

// Config is the part of the settings that belongs to one database.
type Config struct {
	// JournalMode says what to do with a database that is not in WAL mode:
	// JournalWAL or JournalKeep.
	JournalMode string `yaml:"journal-mode"`
	// PollInterval is how often the database is looked at when no file event
	// arrives, as on network file systems.
	PollInterval time.Duration `yaml:"poll-interval"`
	// WALLimit is the size of the WAL in bytes above which the write lock may
	// be taken for an instant, about 50 ms at most, to let SQLite start the WAL over,
	// because a writer at full speed leaves no quiet one. 0 forbids it: the WAL
	// of such a writer then grows until it pauses.
	WALLimit Size `yaml:"wal-limit"`
}

// Size is a number of bytes, written like 32MiB or 32000000.
type Size int64

// UnmarshalText parses a size.
func (s *Size) UnmarshalText(text []byte) error {
	n, err := humanize.ParseBytes(string(text))
	if err != nil || n > 1<<62 {
		return fmt.Errorf("size %q: use a number of bytes or one with a unit, such as 32MiB", text)
	}
	*s = Size(n)
	return nil
}

// MarshalText writes a size with the largest unit that keeps it exact.
func (s Size) MarshalText() ([]byte, error) {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for s != 0 && s%1024 == 0 && i < len(units)-1 {
		s /= 1024
		i++
	}
	return fmt.Appendf(nil, "%d%s", int64(s), units[i]), nil
}

// DefaultConfig returns the settings that apply where nothing is said.
func DefaultConfig() Config {
	return Config{JournalMode: JournalWAL, PollInterval: time.Second, WALLimit: 32 << 20}
}

// Validate checks the fields.
func (c Config) Validate() error {
	if c.JournalMode != JournalWAL && c.JournalMode != JournalKeep {
		return fmt.Errorf("journal-mode %q: use %q or %q", c.JournalMode, JournalWAL, JournalKeep)
	}
	if c.PollInterval < 10*time.Millisecond || c.PollInterval > time.Hour {
		return fmt.Errorf("poll-interval %s: use 10ms to 1h", c.PollInterval)
	}
	if c.WALLimit != 0 && c.WALLimit < 2*restartBytes {
		return fmt.Errorf("wal-limit %d: use 0 or at least %d bytes", c.WALLimit, 2*restartBytes)
	}
	return nil
}

// StateDir returns the directory that holds what capture knows of the database
// at path: the page sums, the spool and the lock.
func StateDir(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-tidemark")
}
