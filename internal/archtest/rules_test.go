package archtest_test

import (
	"fmt"
	"strings"
	"testing"
)

const module = "github.com/tidemark-io/tidemark/"

func TestImportRules(t *testing.T) {
	for _, test := range []struct{ file, imports, want string }{
		{"ltx/a.go", module + "wal", "ltx must not import wal"},
		{"wal/a.go", module + "internal/loop", "wal must not import internal/loop"},
		{"storage/a.go", module + "storage/storagetest", "storage must not import storage/storagetest"},
		{"storage/dir_test.go", module + "storage/storagetest", ""},
		{"storage/storagetest/a.go", module + "storage", ""},
		{"internal/loop/a.go", module + "ltx", "internal/loop must not import ltx"},
		{"internal/scratch/a.go", module + "internal/loop", "internal/scratch must not import internal/loop"},
		{"capture/a.go", module + "wal", ""},
		{"capture/a.go", module + "internal/scratch", ""},
		{"capture/a.go", module + "storage", "capture must not import storage"},
		{"capture/a.go", module + "replica", "capture must not import replica"},
		{"capture/a_test.go", module + "replica", "capture must not import replica"},
		{"capture/a_test.go", module + "internal/testdb", ""},
		{"replica/a.go", module + "storage", ""},
		{"replica/a.go", module + "replica/apply", ""},
		{"replica/a.go", module + "capture", "replica must not import capture"},
		{"replica/a.go", module + "compaction", "replica must not import compaction"},
		{"replica/a_test.go", module + "s3", "replica must not import s3"},
		{"s3/a.go", module + "storage", ""},
		{"s3/a.go", module + "ltx", "s3 must not import ltx"},
		{"s3/a_test.go", module + "s3", ""},
		{"leaser/a.go", module + "storage", ""},
		{"leaser/a.go", module + "replica", "leaser must not import replica"},
		{"compaction/a.go", module + "replica", ""},
		{"compaction/a.go", module + "capture", "compaction must not import capture"},
		{"catalog/a.go", module + "ltx", "catalog must not import ltx"},
		{"cmd/tidemark/a.go", module + "s3", ""},
		{"internal/e2e/a_test.go", module + "s3", ""},
		{"wal/a.go", module + "helper", "wal must not import helper"},
		{"helper/a.go", "fmt", "package helper has no place"},
		{"ltx/a.go", "github.com/superfly/ltx", ""},
		{"ltx/a_test.go", "github.com/superfly/ltx", ""},
		{"replica/a_test.go", "github.com/superfly/ltx", "must not import github.com/superfly/ltx"},
		{"wal/a.go", "github.com/mattn/go-sqlite3", "must not import github.com/mattn/go-sqlite3"},
		{"wal/a_test.go", "github.com/mattn/go-sqlite3", ""},
		{"catalog/a.go", "github.com/mattn/go-sqlite3", ""},
		{"replica/a.go", "github.com/fsnotify/fsnotify", "must not import github.com/fsnotify"},
		{"replica/apply/a.go", "github.com/fsnotify/fsnotify", ""},
		{"storage/a_test.go", "github.com/aws/aws-sdk-go-v2/aws", "must not import github.com/aws"},
		{"s3/a.go", "github.com/aws/aws-sdk-go-v2/service/s3", ""},
		{"internal/testbucket/a.go", "github.com/aws/smithy-go", ""},
	} {
		t.Run(test.file+" "+test.imports, func(t *testing.T) {
			tree{test.file: fmt.Sprintf("// Package a is.\npackage a\nimport _ %q\n", test.imports)}.expect(t, test.want)
		})
	}
}

func TestSizeRules(t *testing.T) {
	head := "// Package wal is.\npackage wal\n"
	function := func(lines int) string { return "func f() {\n" + strings.Repeat("\n", lines-2) + "}\n" }
	for name, test := range map[string]struct{ file, src, want string }{
		"file of 300":             {"wal/a.go", head + strings.Repeat("\n", 298), ""},
		"file of 301":             {"wal/a.go", head + strings.Repeat("\n", 299), "301 lines"},
		"test file of 301":        {"wal/a_test.go", head + strings.Repeat("\n", 299), "301 lines"},
		"function of 60":          {"wal/a.go", head + function(60), ""},
		"function of 61":          {"wal/a.go", head + function(61), "f has 61 lines"},
		"test function of 61":     {"wal/a_test.go", head + function(61), "f has 61 lines"},
		"no package comment":      {"wal/a.go", "package wal\n", "package wal has no package comment"},
		"command without comment": {"cmd/tidemark/a.go", "package main\n", ""},
	} {
		t.Run(name, func(t *testing.T) { tree{test.file: test.src}.expect(t, test.want) })
	}
}

func TestDeclarationRules(t *testing.T) {
	const notAllowed = "package variable x is not"
	for src, want := range map[string]string{
		"func init() {}":                                   "func init",
		"func (t T) init() {}":                             "",
		"var x int":                                        notAllowed,
		"var x = 1":                                        notAllowed,
		"var x = f()":                                      notAllowed,
		"var x = &T{}":                                     notAllowed,
		"var x = sync.Mutex{}":                             notAllowed,
		"var x = new(T)":                                   notAllowed,
		"var x = func() {}":                                notAllowed,
		"var x = map[string]int{}":                         "",
		"var x = []int{1}":                                 "",
		"var x = [...]int{1}":                              "",
		"var x = Config{}":                                 "",
		"var x = regexp.MustCompile(``)":                   "",
		"var ErrX = errors.New(``)":                        "",
		"var (\n\terrX = fmt.Errorf(`%w`, ErrY)\n)":        "",
		"var x = errors.New(``)":                           notAllowed,
		"var _ io.Reader = x{}":                            "",
		"//go:embed a.txt\nvar x string":                   "",
		"var (\n\t//go:embed a.txt\n\tx string\n)":         "",
		"var version = `dev`":                              "package variable version is not",
		"type t struct { ctx context.Context }":            "a context is a parameter",
		"type t struct { context.Context }":                "a context is a parameter",
		"func f() { type t struct { c context.Context } }": "a context is a parameter",
	} {
		t.Run(src, func(t *testing.T) {
			tree{"wal/a.go": "// Package wal is.\npackage wal\n" + src}.expect(t, want)
		})
	}
	tree{"cmd/tidemark/main.go": "package main\nvar version string\n"}.expect(t, "")
	tree{"wal/a_test.go": "// Package a is.\npackage a\nimport \"" + module + "wal\"\nvar x = wal.Limit{}\n"}.expect(t, "")
}

func TestPackageVariablesAreNeverWritten(t *testing.T) {
	const written = "writes to package variable x"
	for body, want := range map[string]string{
		"x[1] = 2":                 written,
		"x[1] += 2":                written,
		"x[1]++":                   written,
		"x[1].f.g = 2":             written,
		"(*x)[1] = 2":              written,
		"x, y = nil, nil":          written,
		"p := &x[1]":               written,
		"clear(x)":                 written,
		"copy(x[1:], y)":           written,
		"delete(x, 1)":             written,
		"for x[0] = range 10 {":    written,
		"func() { x = nil }()":     written,
		"http.DefaultClient = nil": "writes to package variable http",
		"y := x[1]":                "",
		"x := []int{}; x[1] = 2":   "",
		"_, y = f()":               "",
		"y.x = 1":                  "",
		"for x := range y { x++":   "",
	} {
		t.Run(body, func(t *testing.T) {
			closing := strings.Repeat("}", strings.Count(body, "{")-strings.Count(body, "}"))
			tree{
				"wal/a.go": "// Package wal is.\npackage wal\nvar x = []int{}\nvar _ T = x\n",
				"wal/b.go": "package wal\nimport \"net/http\"\nfunc f() {\n" + body + closing + "\n}\n",
				"s3/b.go":  "// Package s3 is.\npackage s3\nfunc f() { x = 1 }\n",
			}.expect(t, want)
		})
	}
}

func TestStatementRules(t *testing.T) {
	const head = "// Package a is.\npackage a\n"
	for name, test := range map[string]struct{ file, src, want string }{
		"go":                 {"wal/a.go", "func f() { go f() }", "go statement"},
		"go in a test":       {"wal/a_test.go", "func f() { func() { go f() }() }", "go statement"},
		"go in an election":  {"leaser/elect.go", "func f() { go f() }", ""},
		"sleep":              {"wal/a_test.go", "func f() { time.Sleep(1) }", "must not sleep"},
		"sleep in a suite":   {"storage/storagetest/a.go", "import \"testing\"\nfunc f() { time.Sleep(1) }", "must not sleep"},
		"sleep outside":      {"wal/a.go", "func f() { time.Sleep(1) }", ""},
		"skip":               {"wal/a_test.go", "func f(t *testing.T) { t.Skip() }", "must not be skipped"},
		"skip with a format": {"wal/a_test.go", "func f(t *testing.T) { t.Skipf(``) }", "must not be skipped"},
		"skip now":           {"wal/a_test.go", "func f(t *testing.T) { t.SkipNow() }", "must not be skipped"},
		"skip outside":       {"wal/a.go", "func f(r *reader) { r.Skip() }", ""},
	} {
		t.Run(name, func(t *testing.T) { tree{test.file: head + test.src + "\n"}.expect(t, test.want) })
	}
}
