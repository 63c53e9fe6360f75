package quarantine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Fields are columns with their values, in order. As JSON they are an object.
type Fields []Field

// Field is a column with its value.
type Field struct {
	Name  string
	Value Value
}

// Value is what SQLite stores: nil, an int64, a float64, a string or a []byte,
// the latter two cut if Bytes, their whole size, is not 0.
type Value struct {
	V     any
	Bytes int64
}

// row makes the values of a row those of a change.
func (q query) row(kind RowChange, values []any) RowChange {
	next := func() Value {
		v := Value{V: values[0]}
		if size, ok := values[1].(int64); ok {
			v.Bytes = size
		}
		values = values[2:]
		return v
	}
	for _, name := range q.key {
		kind.Key = append(kind.Key, Field{name, next()})
	}
	for _, name := range q.columns {
		v := next()
		if !q.both {
			if q.after {
				kind.After = append(kind.After, Field{name, v})
			} else {
				kind.Before = append(kind.Before, Field{name, v})
			}
			continue
		}
		before := next()
		differs, _ := values[0].(int64)
		values = values[1:]
		if differs != 0 {
			kind.Before = append(kind.Before, Field{name, before})
			kind.After = append(kind.After, Field{name, v})
		}
	}
	return kind
}

// String is how the value is written in SQL, as far as it is shown.
func (v Value) String() string {
	var text string
	switch x := v.V.(type) {
	case nil:
		return "NULL"
	case string:
		text = strconv.Quote(x)
	case []byte:
		text = fmt.Sprintf("x'%x'", x)
	case float64:
		return number(x)
	default:
		return fmt.Sprint(x)
	}
	if v.Bytes > 0 {
		text += fmt.Sprintf("... (%d bytes)", v.Bytes)
	}
	return text
}

// number tells a float from an integer of the same value.
func number(x float64) string {
	text := strconv.FormatFloat(x, 'g', -1, 64)
	if strings.Trim(text, "-0123456789") == "" {
		text += ".0"
	}
	return text
}

// MarshalJSON writes an object in the order of the fields.
func (f Fields) MarshalJSON() ([]byte, error) {
	parts := make([][]byte, len(f))
	for i, field := range f {
		name, err := json.Marshal(field.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(field.Value)
		if err != nil {
			return nil, err
		}
		parts[i] = bytes.Join([][]byte{name, value}, []byte{':'})
	}
	return slices.Concat([]byte{'{'}, bytes.Join(parts, []byte{','}), []byte{'}'}), nil
}

// MarshalJSON writes a number, a string or null; what is cut or binary is an
// object with text or blob (base64), and bytes, the whole size.
func (v Value) MarshalJSON() ([]byte, error) {
	type object struct {
		Text  *string `json:"text,omitempty"`
		Blob  []byte  `json:"blob,omitempty"`
		Bytes int64   `json:"bytes"`
	}
	switch x := v.V.(type) {
	case float64:
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return json.Marshal(number(x))
		}
		return []byte(number(x)), nil
	case string:
		size := max(v.Bytes, int64(len(x)))
		if !utf8.ValidString(x) {
			return json.Marshal(object{Blob: []byte(x), Bytes: size})
		}
		if v.Bytes > 0 {
			return json.Marshal(object{Text: &x, Bytes: size})
		}
	case []byte:
		return json.Marshal(object{Blob: x, Bytes: max(v.Bytes, int64(len(x)))})
	}
	return json.Marshal(v.V)
}
