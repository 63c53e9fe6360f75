package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
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

// levelVariable goes before the level in a file. Other programs read it too, so
// a level of theirs is no reason not to start.
const levelVariable = "LOG_LEVEL"

// fromEnvironment takes the level of the environment, if there is a good one.
func (l *Logging) fromEnvironment() error {
	level := os.Getenv(levelVariable)
	if level == "" {
		return nil
	}
	changed := *l
	changed.Level = level
	if err := changed.Validate(); err != nil {
		return fmt.Errorf("%s=%q is none of debug, info, warn, error", levelVariable, level)
	}
	*l = changed
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
	options := &slog.HandlerOptions{Level: level, AddSource: l.Source, ReplaceAttr: readable}
	if l.Type == "json" {
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}

// readable writes durations with their unit, which JSON would show as bare
// nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
