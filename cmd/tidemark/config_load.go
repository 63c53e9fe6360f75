package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/strict"
)

// defaultConfigPath is read when a command is given neither a file nor what
// the file would say.
const defaultConfigPath = "/etc/tidemark.yml"

// readConfig loads the file at path. With lookup, ${VAR} and $VAR stand for
// what it returns.
func readConfig(path string, lookup func(string) (string, bool)) (Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("configuration file: %w", err)
	}
	c, err := parseConfig(text, lookup)
	if err != nil {
		return Config{}, fmt.Errorf("configuration file %s: %w", path, err)
	}
	return c, nil
}

func parseConfig(text []byte, lookup func(string) (string, bool)) (Config, error) {
	c := DefaultConfig()
	c.HA.Lease.forget()
	d := strict.Decoder{Refused: refusedKeys(), Suggest: suggestion, Lookup: lookup}
	if err := d.Decode(text, &c); err != nil {
		return Config{}, err
	}
	if err := c.HA.Lease.settle(); err != nil {
		return Config{}, err
	}
	if err := c.normalize(); err != nil {
		return Config{}, err
	}
	return c, c.Validate()
}

// normalize brings the spellings of one meaning to one form.
func (c *Config) normalize() error {
	if _, err := c.Compaction.of(Snapshots{}); err != nil {
		return err
	}
	c.HA.Lease.Times = c.HA.Lease.Times.WithDefaults()
	if c.HA.RoleFile != "" {
		path, err := expandHome(c.HA.RoleFile)
		if err != nil {
			return fmt.Errorf("role-file: %w", err)
		}
		c.HA.RoleFile = path
	}
	for i := range c.Databases {
		if err := c.Databases[i].normalize(*c); err != nil {
			return fmt.Errorf("dbs[%d].%w", i, err)
		}
	}
	return nil
}

// expandHome makes a path absolute; ~/ is the home directory.
func expandHome(path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		path = filepath.Join(home, rest)
	}
	return filepath.Abs(path)
}

// resolved is the file behind links, as far as it exists, so that a database
// has one name and its state lies beside it.
func resolved(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(resolved(dir), filepath.Base(path))
	}
	return path
}

// sameFile tells whether two absolute paths name one file.
func sameFile(a, b string) bool { return a == b || resolved(a) == resolved(b) }

// lookupVariable is the environment, and PID.
func lookupVariable(name string) (string, bool) {
	if name == "PID" {
		return strconv.Itoa(os.Getpid()), true
	}
	return os.LookupEnv(name)
}
