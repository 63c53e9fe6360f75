package archtest

import "go/ast"

const (
	maxFileLines     = 300
	maxFunctionLines = 60
)

func checkSizes(r *report, f *file) {
	if f.lines > maxFileLines {
		r.add(f.Package, "the file has %d lines, more than %d", f.lines, maxFileLines)
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		lines := r.fset.Position(fn.End()).Line - r.fset.Position(fn.Pos()).Line + 1
		if lines > maxFunctionLines {
			r.add(fn.Pos(), "%s has %d lines, more than %d", fn.Name.Name, lines, maxFunctionLines)
		}
	}
}

// checkPackageComments wants a comment on every package but commands.
func checkPackageComments(r *report, files []*file) {
	first, documented := map[string]*file{}, map[string]bool{}
	for _, f := range files {
		if first[f.dir] == nil {
			first[f.dir] = f
		}
		documented[f.dir] = documented[f.dir] || f.Doc != nil || f.Name.Name == "main"
	}
	for dir, f := range first {
		if !documented[dir] {
			r.add(f.Package, "package %s has no package comment", dir)
		}
	}
}
