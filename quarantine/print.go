package quarantine

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Text returns a sink that writes lines for people.
func Text(w io.Writer) Sink { return &text{w: w} }

// JSON returns a sink that writes one JSON object a line: schema, row or table.
func JSON(w io.Writer) Sink {
	return lines{json.NewEncoder(w)}
}

type text struct {
	w     io.Writer
	table string // whose head is written
}

func (t *text) Schema(c SchemaChange) error {
	switch {
	case c.Before == "":
		return t.print("%s %q is new: %s\n", c.Type, c.Name, oneLine(c.After))
	case c.After == "":
		return t.print("%s %q was dropped: %s\n", c.Type, c.Name, oneLine(c.Before))
	}
	return t.print("%s %q was altered\n  before: %s\n  after:  %s\n", c.Type, c.Name, oneLine(c.Before), oneLine(c.After))
}

func (t *text) Row(c RowChange) error {
	if err := t.head(c.Table); err != nil {
		return err
	}
	switch c.Change {
	case Added:
		return t.print("  + %s\n", list(c.Key, c.After))
	case Removed:
		return t.print("  - %s\n", list(c.Key, c.Before))
	}
	var parts []string
	for i, f := range c.After {
		parts = append(parts, fmt.Sprintf("%s: %s -> %s", oneLine(f.Name), c.Before[i].Value, f.Value))
	}
	return t.print("  ~ %s  %s\n", list(c.Key), strings.Join(parts, "  "))
}

func (t *text) Table(c TableChange) error {
	if err := t.head(c.Name); err != nil {
		return err
	}
	if c.Problem != "" {
		if err := t.print("  could not be compared: %s\n", c.Problem); err != nil {
			return err
		}
	}
	return t.print("  %d added, %d removed, %d changed\n", c.Added, c.Removed, c.Changed)
}

func (t *text) head(table string) error {
	if t.table == table {
		return nil
	}
	t.table = table
	return t.print("table %q\n", table)
}

func (t *text) print(format string, args ...any) error {
	_, err := fmt.Fprintf(t.w, format, args...)
	return err
}

func list(all ...Fields) string {
	var parts []string
	for _, fields := range all {
		for _, f := range fields {
			parts = append(parts, oneLine(f.Name)+"="+f.Value.String())
		}
	}
	return strings.Join(parts, " ")
}

// oneLine is a text without what would break or garble a line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

type lines struct{ e *json.Encoder }

func (l lines) Schema(c SchemaChange) error { return l.e.Encode(map[string]any{"schema": c}) }
func (l lines) Row(c RowChange) error       { return l.e.Encode(map[string]any{"row": c}) }
func (l lines) Table(c TableChange) error   { return l.e.Encode(map[string]any{"table": c}) }
