package archtest

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// tableMakers build tables that cannot be written as literals.
var tableMakers = []string{"regexp.MustCompile", "crc64.MakeTable", "crc32.MakeTable", "strings.NewReplacer"}

var sentinelName = regexp.MustCompile(`^[Ee]rr[A-Z]`)

// checkDeclarations forbids init, contexts in structs, and package variables
// other than sentinel errors, tables, embedded files and assertions.
func checkDeclarations(r *report, f *file) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.Name == "init" {
				r.add(d.Pos(), "func init")
			}
		case *ast.GenDecl:
			if d.Tok == token.VAR {
				checkVariables(r, f, d)
			}
		}
	}
	ast.Inspect(f.File, func(n ast.Node) bool {
		if s, ok := n.(*ast.StructType); ok {
			checkFields(r, s)
		}
		return true
	})
}

func checkFields(r *report, s *ast.StructType) {
	for _, field := range s.Fields.List {
		if dotted(field.Type) == "context.Context" {
			r.add(field.Pos(), "a context is a parameter, not a field")
		}
	}
}

func checkVariables(r *report, f *file, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok || embeds(d.Doc) || embeds(v.Doc) {
			continue
		}
		for i, name := range v.Names {
			var value ast.Expr
			if len(v.Values) == len(v.Names) {
				value = v.Values[i]
			}
			if name.Name != "_" && !allowedVariable(f, name.Name, value) {
				r.add(name.Pos(), "package variable %s is not a sentinel error, a table or an embedded file", name.Name)
			}
		}
	}
}

func embeds(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return strings.HasPrefix(c.Text, "//go:embed ")
	})
}

// allowedVariable tells whether a variable may be one of the package. The
// version of a command is set by the linker.
func allowedVariable(f *file, name string, value ast.Expr) bool {
	if f.Name.Name == "main" && name == "version" {
		return true
	}
	switch value := value.(type) {
	case *ast.CompositeLit:
		return isTable(f, value.Type)
	case *ast.CallExpr:
		made := dotted(value.Fun)
		if made == "errors.New" || made == "fmt.Errorf" {
			return sentinelName.MatchString(name)
		}
		return slices.Contains(tableMakers, made)
	}
	return false
}

// isTable tells whether a literal is of an array, slice or map type or of a
// type of this module; those of other modules may hold state.
func isTable(f *file, t ast.Expr) bool {
	switch t := t.(type) {
	case *ast.ArrayType, *ast.MapType, *ast.Ident:
		return true
	case *ast.SelectorExpr:
		x, ok := t.X.(*ast.Ident)
		return ok && strings.HasPrefix(importNames(f)[x.Name], module+"/")
	}
	return false
}

// dotted returns a.b for that selector and a for a name; otherwise nothing.
func dotted(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return x.Name + "." + e.Sel.Name
		}
	}
	return ""
}
