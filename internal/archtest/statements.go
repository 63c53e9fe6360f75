package archtest

import "go/ast"

// electFile alone may start goroutines without an errgroup.
const electFile = "leaser/elect.go"

// checkStatements forbids go statements, and in tests sleeping and skipping.
func checkStatements(r *report, f *file) {
	testing := f.test || imports(f, "testing")
	ast.Inspect(f.File, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if f.path != electFile {
				r.add(n.Pos(), "go statement; use an errgroup")
			}
		case *ast.SelectorExpr:
			if testing {
				checkTestCall(r, n)
			}
		}
		return true
	})
}

func checkTestCall(r *report, s *ast.SelectorExpr) {
	switch {
	case dotted(s) == "time.Sleep":
		r.add(s.Pos(), "a test must not sleep; poll a condition with a deadline")
	case s.Sel.Name == "Skip", s.Sel.Name == "Skipf", s.Sel.Name == "SkipNow":
		r.add(s.Pos(), "a test must not be skipped")
	}
}

func imports(f *file, name string) bool {
	for _, spec := range f.Imports {
		if spec.Path.Value == `"`+name+`"` {
			return true
		}
	}
	return false
}
