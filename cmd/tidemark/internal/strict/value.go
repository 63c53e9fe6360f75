package strict

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// value stores what n says in v.
func (w *walk) value(n ast.Node, v reflect.Value, key string) {
	n, ok := w.resolve(n, key)
	if !ok {
		return
	}
	if _, null := n.(*ast.NullNode); null || n == nil {
		w.null(n, v, key)
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		w.value(n, v.Elem(), key)
		return
	}
	text, scalar := scalarText(n)
	if scalar {
		if text, ok = w.expand(n, text, key); !ok {
			return
		}
	}
	if custom, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok && scalar {
		if err := custom.UnmarshalText([]byte(text)); err != nil {
			w.addf(n, key, "%v", err)
		}
		return
	}
	switch {
	case v.Kind() == reflect.Struct:
		w.mapping(n, v, key)
	case v.Kind() == reflect.Slice:
		w.sequence(n, v, key)
	case !scalar:
		w.addf(n, key, "want %s, not %s", kindName(v.Type()), nodeName(n))
	default:
		if err := setScalar(n, text, v); err != nil {
			w.addf(n, key, "%v", err)
		}
	}
}

// null is a key without a value. Below an empty heading everything keeps its
// default, and an empty text is a text; anything else was forgotten.
func (w *walk) null(n ast.Node, v reflect.Value, key string) {
	switch v.Kind() {
	case reflect.Struct, reflect.Slice, reflect.Pointer, reflect.String:
	default:
		w.addf(n, key, "has no value; want %s", kindName(v.Type()))
	}
}

func (w *walk) sequence(n ast.Node, v reflect.Value, key string) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		w.addf(n, key, "want a list (lines that begin with -), not %s", nodeName(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, len(list.Values))) // a list in the text replaces that of the defaults
	for i, item := range list.Values {
		element := reflect.New(v.Type().Elem())
		if d, ok := element.Interface().(Defaulter); ok {
			d.SetDefaults()
		}
		w.value(item, element.Elem(), fmt.Sprintf("%s[%d]", key, i))
		v.Set(reflect.Append(v, element.Elem()))
	}
}

// setScalar converts text without guessing.
func setScalar(n ast.Node, text string, v reflect.Value) error {
	wrong := fmt.Errorf("want %s, not %q", kindName(v.Type()), text)
	if v.Type() == reflect.TypeFor[time.Duration]() {
		d, err := time.ParseDuration(text)
		if err != nil {
			return wrong
		}
		v.SetInt(int64(d))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		written, _ := scalarText(n)
		expanded := written != text && (text == "true" || text == "false")
		if _, ok := n.(*ast.BoolNode); !ok && !expanded {
			return wrong
		}
		v.SetBool(strings.EqualFold(text, "true"))
	case reflect.Int, reflect.Int32, reflect.Int64:
		i, err := strconv.ParseInt(text, 0, v.Type().Bits())
		if err != nil {
			return wrong
		}
		v.SetInt(i)
	case reflect.Uint, reflect.Uint32, reflect.Uint64:
		u, err := strconv.ParseUint(text, 0, v.Type().Bits())
		if err != nil {
			return wrong
		}
		v.SetUint(u)
	default:
		return fmt.Errorf("settings of type %s cannot be read", v.Type())
	}
	return nil
}

// scalarText is the text of a node that is neither list nor mapping.
func scalarText(n ast.Node) (string, bool) {
	switch node := n.(type) {
	case *ast.StringNode:
		return node.Value, true
	case *ast.LiteralNode:
		return node.Value.Value, true
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	default:
		return "", false
	}
}

func kindName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "a duration such as 500ms, 30s or 5m"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.String:
		return "a text"
	case t.Kind() == reflect.Slice:
		return "a list"
	case t.Kind() == reflect.Struct:
		return "keys with values"
	default:
		return "a whole number"
	}
}

func nodeName(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "keys with values"
	case *ast.SequenceNode:
		return "a list"
	default:
		text, _ := scalarText(n)
		return strconv.Quote(text)
	}
}
