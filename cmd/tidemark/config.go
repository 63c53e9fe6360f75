package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/internal/web"
	"github.com/tidemark-io/tidemark/s3"
)

// Config is what a configuration file holds.
type Config struct {
	Databases       []Database    `yaml:"dbs"`
	MaxOpen         int           `yaml:"max-open-databases"` // of those found in directories, at a time
	Exec            string        `yaml:"exec"`               // command line of the child process
	ShutdownTimeout time.Duration `yaml:"shutdown-timeout"`
	Logging         Logging       `yaml:"logging"`
	Socket          Socket        `yaml:"socket"`
	Addr            string        `yaml:"addr"`            // host:port of HTTP; empty: none
	SyncInterval    time.Duration `yaml:"sync-interval"`   // this and S3: for replicas that do not say otherwise
	VerifyInterval  time.Duration `yaml:"verify-interval"` // of reading a slice of each replica again; 0: never
	Compaction      Compaction    `yaml:",inline"`
	Scratch         Scratch       `yaml:",inline"`
	S3              s3.Config     `yaml:",inline"`
	HA              Availability  `yaml:",inline"`
}

// Database is one database with its replica, or all that are found in a
// directory.
type Database struct {
	Path             string         `yaml:"path,omitempty"`
	Dir              string         `yaml:"dir,omitempty"`
	Pattern          string         `yaml:"pattern,omitempty"`   // for names of files in Dir
	Recursive        bool           `yaml:"recursive,omitempty"` // below Dir, not only in it
	Watch            bool           `yaml:"watch,omitempty"`     // also those that come later
	RestoreIfMissing bool           `yaml:"restore-if-db-not-exists"`
	Capture          capture.Config `yaml:",inline"`
	Snapshot         Snapshots      `yaml:"snapshot,omitempty"`
	Replica          Replica        `yaml:"replica"`
	Replicas         []Replica      `yaml:"replicas,omitempty"` // another spelling of replica, a list of one
	compaction       compaction.Config
}

// SetDefaults makes d what it is when the file names nothing.
func (d *Database) SetDefaults() { *d = Database{Capture: capture.DefaultConfig()} }

// DefaultConfig returns the settings of an empty file.
func DefaultConfig() Config {
	return Config{
		MaxOpen:         32,
		ShutdownTimeout: 30 * time.Second,
		Logging:         Logging{Level: "info", Type: "text"},
		Socket:          Socket{Enabled: true, Permissions: 0o600},
		Compaction:      defaultCompaction(),
		Scratch:         Scratch{Limit: 10 << 30},
		S3:              s3.DefaultConfig(),
		HA:              defaultAvailability(),
	}
}

// Validate names every setting that is not possible, alone or together with
// another one.
func (c Config) Validate() error {
	errs := []error{c.Logging.Validate(), c.Socket.Validate(), web.CheckAddr(c.Addr), c.Scratch.Validate(), c.S3.ValidateTransfer()}
	if c.ShutdownTimeout < time.Second {
		errs = append(errs, fmt.Errorf("shutdown-timeout: %s is too short; at least 1s is needed for a last upload", c.ShutdownTimeout))
	}
	if _, err := c.command(); err != nil {
		errs = append(errs, err)
	}
	if c.S3.Prefix != "" {
		errs = append(errs, errors.New("path: it belongs to a database or a replica; move it there"))
	}
	if len(c.Databases) == 0 {
		errs = append(errs, errors.New("dbs: no database is listed; add one with its path and replica"))
	}
	if c.VerifyInterval != 0 && (c.VerifyInterval < time.Second || c.VerifyInterval > 366*24*time.Hour) {
		errs = append(errs, fmt.Errorf("verify-interval: %s; use 0s for never, or 1s to 8784h", c.VerifyInterval))
	}
	if c.MaxOpen < 1 || c.MaxOpen > 1000 {
		errs = append(errs, fmt.Errorf("max-open-databases: %d; use 1 to 1000", c.MaxOpen))
	}
	paths, places := map[string]int{}, map[string]int{}
	for i, d := range c.Databases {
		place, err := d.validate()
		if err != nil {
			errs = append(errs, fmt.Errorf("dbs[%d]%w", i, err))
			continue
		}
		errs = append(errs,
			unique(paths, d.Path+d.searched(), i, d.kind(), "list each database once"),
			unique(places, place, i, "replica", "give each database a prefix of its own"))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.validateLease()
}

// unique notes value and returns an error when another database has it too.
func unique(seen map[string]int, value string, i int, key, advice string) error {
	if first, ok := seen[value]; ok {
		return fmt.Errorf("dbs[%d].%s: %s is that of dbs[%d] too; %s", i, key, value, first, advice)
	}
	seen[value] = i
	return nil
}

// validate returns the place of the replica. Its errors begin with the key
// below that of the database.
func (d Database) validate() (place string, err error) {
	if err := d.validateDir(); err != nil {
		return "", err
	}
	if err := d.Capture.Validate(); err != nil {
		return "", fmt.Errorf(".%w", err)
	}
	l, err := d.Replica.locate()
	if err != nil {
		return "", fmt.Errorf(".replica.%w", err)
	}
	if d.Replica.SyncInterval < 0 || d.Replica.SyncInterval > 24*time.Hour {
		return "", fmt.Errorf(".replica.sync-interval: %s; use 0s to 24h", d.Replica.SyncInterval)
	}
	return l.key(), nil
}

// command splits the child's command line as a shell would, without one.
func (c Config) command() ([]string, error) {
	return commandLine("exec", c.Exec)
}
