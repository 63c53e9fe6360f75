package main

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
)

// Logging says what is logged, how and where.
type Logging struct {
	Level  string `yaml:"level"`  // debug, info, warn or error
	Type   string `yaml:"type"`   // text or json
	Stderr bool   `yaml:"stderr"` // to standard error instead of standard output
	Source bool   `yaml:"source"` // with file and line of the code
}

// Validate names the first setting that is not possible.
func (l Logging) Validate() error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		return fmt.Errorf("logging.level: %q is none of debug, info, warn, error", l.Level)
	}
	if types := []string{"text", "json"}; !slices.Contains(types, l.Type) {
		return fmt.Errorf("logging.type: %q is none of %s", l.Type, strings.Join(types, ", "))
	}
	return nil
}

// newLogger builds the logger that l describes; l must be valid.
func newLogger(l Logging, stdout, stderr io.Writer) *slog.Logger {
	out := stdout
	if l.Stderr {
		out = stderr
	}
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.Level))
	options := &slog.HandlerOptions{Level: level, AddSource: l.Source}
	if l.Type == "json" {
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}
