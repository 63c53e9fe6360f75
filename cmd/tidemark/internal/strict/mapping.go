package strict

import (
	"reflect"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// indexes are the list positions within a key's path.
var indexes = regexp.MustCompile(`\[\d+\]`)

func (w *walk) mapping(n ast.Node, v reflect.Value, key string) {
	fields := map[string]reflect.Value{}
	collect(v, fields)
	var entries []*ast.MappingValueNode
	switch node := n.(type) {
	case *ast.MappingNode:
		entries = node.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{node}
	default:
		w.addf(n, key, "want keys with values, not %s", nodeName(n))
		return
	}
	for _, entry := range entries {
		if entry.Key.IsMergeKey() {
			w.value(entry.Value, v, key)
			continue
		}
		w.entry(entry, fields, key)
	}
}

func (w *walk) entry(entry *ast.MappingValueNode, fields map[string]reflect.Value, parent string) {
	name := entry.Key.GetToken().Value
	key := name
	if parent != "" {
		key = parent + "." + name
	}
	field, ok := fields[name]
	if ok {
		w.value(entry.Value, field, key)
		return
	}
	if reason, ok := w.Refused[indexes.ReplaceAllString(key, "")]; ok {
		w.addf(entry.Key, key, "%s", reason)
		return
	}
	known := make([]string, 0, len(fields))
	for name := range fields {
		known = append(known, name)
	}
	hint := ""
	if w.Suggest != nil {
		hint = w.Suggest(name, known)
	}
	w.addf(entry.Key, key, "unknown key%s", hint)
}

// collect gathers the fields of a struct by their yaml names, those of inline
// structs too; an outer field goes before an inline one of the same name.
func collect(v reflect.Value, into map[string]reflect.Value) {
	for i := range v.NumField() {
		name, inline := tag(v.Type().Field(i))
		if inline {
			collect(v.Field(i), into)
		} else if name != "" {
			into[name] = v.Field(i)
		}
	}
	for i := range v.NumField() {
		if name, inline := tag(v.Type().Field(i)); name != "" && !inline {
			into[name] = v.Field(i)
		}
	}
}

// Keys returns the yaml names of all settings in a struct type, with their
// parents, as in dbs.replica.url.
func Keys(t reflect.Type) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var keys []string
	for i := range t.NumField() {
		field := t.Field(i)
		name, inline := tag(field)
		below := Keys(field.Type)
		switch {
		case inline:
			keys = append(keys, below...)
		case name != "":
			keys = append(keys, name)
			for _, key := range below {
				keys = append(keys, name+"."+key)
			}
		}
	}
	return keys
}

// tag returns the yaml name of a field, empty when it is no setting.
func tag(f reflect.StructField) (name string, inline bool) {
	name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	if !f.IsExported() || name == "-" {
		return "", false
	}
	return name, strings.Contains(options, "inline")
}
