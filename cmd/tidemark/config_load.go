package main

import (
	"bytes"
	"errors"
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
	if lookup != nil {
		var err error
		if text, err = expandVariables(text, lookup); err != nil {
			return Config{}, err
		}
	}
	c := DefaultConfig()
	d := strict.Decoder{Refused: refusedKeys(), Suggest: suggestion}
	if err := d.Decode(text, &c); err != nil {
		return Config{}, err
	}
	if err := c.normalize(); err != nil {
		return Config{}, err
	}
	return c, c.Validate()
}

// normalize brings the spellings of one meaning to one form.
func (c *Config) normalize() error {
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

// lookupVariable is the environment, and PID.
func lookupVariable(name string) (string, bool) {
	if name == "PID" {
		return strconv.Itoa(os.Getpid()), true
	}
	return os.LookupEnv(name)
}

// expandVariables puts values in the place of variables, except in comments.
// A variable that is not set is an error: a bucket path with a hole in it
// would be another path.
func expandVariables(text []byte, lookup func(string) (string, bool)) ([]byte, error) {
	var errs []error
	lines := bytes.Split(text, []byte("\n"))
	for i, line := range lines {
		code, comment := splitComment(string(line))
		expanded := os.Expand(code, func(name string) string {
			if name == "$" {
				return "$"
			}
			value, ok := lookup(name)
			if !ok {
				errs = append(errs, fmt.Errorf("line %d: the environment variable %q is not set; set it, or write $$ for a dollar sign", i+1, name))
			}
			if strings.ContainsAny(value, "\n\r") {
				errs = append(errs, fmt.Errorf("line %d: the environment variable %q has more than one line", i+1, name))
			}
			return value
		})
		lines[i] = []byte(expanded + comment)
	}
	return bytes.Join(lines, []byte("\n")), errors.Join(errs...)
}

// splitComment cuts a line at the # that begins a comment: at its start or
// after a space, outside quotes.
func splitComment(line string) (code, comment string) {
	var quote rune
	before := ' '
	for i, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
		case (r == '"' || r == '\'') && strings.ContainsRune(" :[,{-", before):
			quote = r
		case r == '#' && (before == ' ' || before == '\t'):
			return line[:i], line[i:]
		}
		before = r
	}
	return line, ""
}
