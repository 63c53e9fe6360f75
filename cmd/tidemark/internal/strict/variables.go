package strict

import (
	"os"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Braces of variables would end or begin a mapping within {} and []. While the
// text is parsed, characters stand for them that no text has.
const (
	openBrace  = "\uE000"
	closeBrace = "\uE001"
)

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

func hideBraces(text []byte) []byte {
	return variable.ReplaceAll(text, []byte("$$"+openBrace+"${1}"+closeBrace))
}

// expand puts values in the place of the variables of one scalar. What they
// hold is never read as YAML. A variable that is not set is a problem: a path
// with a hole in it would be another path.
func (w *walk) expand(n ast.Node, text, key string) (string, bool) {
	if w.Lookup == nil || !strings.Contains(text, "$") {
		return text, true
	}
	ok := true
	text = strings.NewReplacer(openBrace, "{", closeBrace, "}").Replace(text)
	text = os.Expand(text, func(name string) string {
		if name == "$" {
			return "$"
		}
		value, set := w.Lookup(name)
		switch {
		case !set:
			w.addf(n, key, "the environment variable %q is not set; set it, or write $$ for a dollar sign", name)
		case strings.ContainsAny(value, "\n\r"):
			w.addf(n, key, "the environment variable %q has more than one line", name)
		default:
			return value
		}
		ok = false
		return ""
	})
	return text, ok
}
