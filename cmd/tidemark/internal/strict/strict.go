// Package strict reads YAML settings into structs and lets nothing pass in
// silence: a key nobody knows, a key given twice, a value of the wrong kind are
// errors with their line. Fields that the text does not name keep their value,
// so defaults are filled in before. It knows no setting by name.
package strict

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Problem is one mistake in the text.
type Problem struct {
	Line    int
	Key     string // with its parents, as in dbs[0].path; empty for a syntax error
	Message string
}

func (p *Problem) Error() string {
	if p.Key == "" {
		return fmt.Sprintf("line %d: %s", p.Line, p.Message)
	}
	return fmt.Sprintf("line %d: %s: %s", p.Line, p.Key, p.Message)
}

// Defaulter is implemented by list elements that are not empty to begin with.
type Defaulter interface{ SetDefaults() }

// Decoder reads one text.
type Decoder struct {
	// Refused are keys with a reason why they are no unknown keys and yet not
	// possible, by their path without indexes, as in "dbs.snapshot".
	Refused map[string]string
	// Suggest returns what to add to the message about an unknown key.
	Suggest func(word string, known []string) string
	// Lookup returns the value of a variable. $NAME and ${NAME} in values, never
	// in keys, stand for it, $$ for a dollar sign. Nil: they stand for themselves.
	Lookup func(name string) (string, bool)
}

// Decode fills the struct that v points to. Every mistake in the text is a
// Problem; they are joined.
func (d Decoder) Decode(text []byte, v any) error {
	if d.Lookup != nil {
		text = hideBraces(text)
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return syntaxProblem(err)
	}
	w := &walk{Decoder: d, anchors: map[string]ast.Node{}}
	var found bool
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if found {
			w.addf(doc.Body, "", "a second document begins here; one is possible")
			break
		}
		found = true
		w.value(doc.Body, reflect.ValueOf(v).Elem(), "")
	}
	return errors.Join(w.problems...)
}

func syntaxProblem(err error) error {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		message, _, _ := strings.Cut(at.GetMessage(), " at [")
		return &Problem{Line: at.GetToken().Position.Line, Message: message}
	}
	return err
}

// walk goes through one text.
type walk struct {
	Decoder
	anchors  map[string]ast.Node
	problems []error
}

func (w *walk) addf(n ast.Node, key, format string, args ...any) {
	line := 0
	if t := n.GetToken(); t != nil {
		line = t.Position.Line
	}
	w.problems = append(w.problems, &Problem{Line: line, Key: key, Message: fmt.Sprintf(format, args...)})
}

// resolve follows anchors, aliases and tags.
func (w *walk) resolve(n ast.Node, key string) (ast.Node, bool) {
	for range 100 {
		switch node := n.(type) {
		case *ast.AnchorNode:
			w.anchors[node.Name.GetToken().Value] = node.Value
			n = node.Value
		case *ast.AliasNode:
			target, ok := w.anchors[node.Value.GetToken().Value]
			if !ok {
				w.addf(n, key, "alias %s is not defined above", node.Value.GetToken().Value)
				return nil, false
			}
			n = target
		case *ast.TagNode:
			w.addf(n, key, "tags are not possible here")
			return nil, false
		default:
			return n, true
		}
	}
	w.addf(n, key, "the alias contains itself")
	return nil, false
}
