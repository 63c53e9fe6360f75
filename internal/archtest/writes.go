package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"strings"
)

// checkWrites forbids writing to a package variable: of the package itself,
// or of one that the file imports.
func checkWrites(r *report, files []*file) {
	variables := map[string]map[string]bool{} // by package, then name
	for _, f := range files {
		in := packageOf(f)
		if variables[in] == nil {
			variables[in] = map[string]bool{}
		}
		for _, name := range packageVariables(f) {
			variables[in][name] = true
		}
	}
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				w := writes{report: r, variables: variables[packageOf(f)], imports: importNames(f), locals: locals(fn)}
				ast.Inspect(fn.Body, w.visit)
			}
		}
	}
}

func packageOf(f *file) string { return f.dir + " " + f.Name.Name }

func packageVariables(f *file) (names []string) {
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
			for _, spec := range g.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

// importNames returns the imported paths by the name they have in the file.
func importNames(f *file) map[string]string {
	names := map[string]string{}
	for _, spec := range f.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = imported
	}
	return names
}

// locals returns every name that a function declares anywhere in it. A
// package variable of such a name is taken to be out of reach.
func locals(fn *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	add := func(idents ...*ast.Ident) {
		for _, id := range idents {
			names[id.Name] = true
		}
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			add(n.Names...)
		case *ast.ValueSpec:
			add(n.Names...)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				add(roots(n.Lhs)...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				add(roots([]ast.Expr{n.Key, n.Value})...)
			}
		}
		return true
	})
	return names
}

// roots returns the x of each x, x[i], x.f, *x and so on.
func roots(exprs []ast.Expr) (idents []*ast.Ident) {
	for _, e := range exprs {
		if id := root(e); id != nil {
			idents = append(idents, id)
		}
	}
	return idents
}

func root(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.IndexExpr:
		return root(e.X)
	case *ast.SelectorExpr:
		return root(e.X)
	case *ast.StarExpr:
		return root(e.X)
	case *ast.ParenExpr:
		return root(e.X)
	case *ast.SliceExpr:
		return root(e.X)
	}
	return nil
}

type writes struct {
	*report
	variables, locals map[string]bool
	imports           map[string]string
}

func (w writes) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			w.written(n.Lhs...)
		}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			w.written(n.Key, n.Value)
		}
	case *ast.IncDecStmt:
		w.written(n.X)
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			w.written(n.X)
		}
	case *ast.CallExpr:
		if f := dotted(n.Fun); len(n.Args) > 0 && (f == "delete" || f == "clear" || f == "copy") {
			w.written(n.Args[0])
		}
	}
	return true
}

func (w writes) written(exprs ...ast.Expr) {
	for _, id := range roots(exprs) {
		if id.Name != "_" && (w.variables[id.Name] || w.imports[id.Name] != "") && !w.locals[id.Name] {
			w.add(id.Pos(), "writes to package variable %s", id.Name)
		}
	}
}
