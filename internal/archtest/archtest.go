// Package archtest checks the sources of this module against the rules of the
// house: which package may import which, how long files and functions may be,
// and what no file may hold. It reads syntax only and must not depend on any
// other package of the module.
package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

const module = "github.com/tidemark-io/tidemark"

// Tree is the parsed sources of the module.
type Tree struct {
	files []*file
	fset  *token.FileSet
}

type file struct {
	path  string // relative to the root of the module
	dir   string
	test  bool // a _test.go file
	lines int
	*ast.File
}

// Load parses every Go file below fsys except testdata, hidden folders and
// nested modules.
func Load(fsys fs.FS) (*Tree, error) {
	t := &Tree{fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return enter(fsys, name)
		case path.Ext(name) != ".go":
			return nil
		}
		return t.add(fsys, name)
	})
	if err != nil {
		return nil, fmt.Errorf("load sources: %w", err)
	}
	return t, nil
}

func enter(fsys fs.FS, dir string) error {
	if dir == "." {
		return nil
	}
	base := path.Base(dir)
	_, err := fs.Stat(fsys, path.Join(dir, "go.mod"))
	if err == nil || base == "testdata" || strings.HasPrefix(base, ".") {
		return fs.SkipDir
	}
	return nil
}

func (t *Tree) add(fsys fs.FS, name string) error {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	parsed, err := parser.ParseFile(t.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.files = append(t.files, &file{
		path:  name,
		dir:   path.Dir(name),
		test:  strings.HasSuffix(name, "_test.go"),
		lines: bytes.Count(src, []byte("\n")),
		File:  parsed,
	})
	return nil
}

// Violations returns every break of a rule, as "file:line: text", sorted.
func (t *Tree) Violations() []string {
	r := &report{fset: t.fset}
	for _, f := range t.files {
		checkImports(r, f)
		checkSizes(r, f)
		checkDeclarations(r, f)
		checkStatements(r, f)
	}
	checkPackageComments(r, t.files)
	checkWrites(r, t.files)
	slices.Sort(r.found)
	return slices.Compact(r.found)
}

type report struct {
	fset  *token.FileSet
	found []string
}

func (r *report) add(at token.Pos, format string, args ...any) {
	p := r.fset.Position(at)
	r.found = append(r.found, fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, fmt.Sprintf(format, args...)))
}
