package archtest

import (
	"slices"
	"strconv"
	"strings"
)

// leaves may be imported by every package that does the work of the sidecar.
var leaves = []string{"internal/loop", "internal/scratch", "internal/filelock"}

// layers says what a package and those below it may import of ours. A package
// that is not here has no place in the design yet.
var layers = map[string][]string{
	"ltx":                 {},
	"wal":                 {},
	"storage":             {"internal/filelock"},
	"storage/storagetest": {"storage"},
	"internal/filelock":   {},
	"internal/loop":       {},
	"internal/scratch":    {"internal/filelock"},
	"internal/archtest":   {},
	"internal/web":        {},
	"internal/testdb":     {},
	"internal/testbucket": {"storage"},
	"catalog":             {},
	"s3":                  {"storage"},
	"leaser":              append([]string{"storage"}, leaves...),
	"capture":             append([]string{"ltx", "wal"}, leaves...),
	"replica":             append([]string{"ltx", "storage", "replica/apply"}, leaves...),
	"replica/apply":       {"ltx", "internal/filelock"},
	"compaction":          append([]string{"replica", "ltx", "storage"}, leaves...),
	"quarantine":          {"ltx", "storage", "internal/filelock"},
	"cmd":                 {"*"},
	"internal/e2e":        {"*"},
}

// testsMayImport is what every test may import beyond its layer.
var testsMayImport = []string{"storage", "storage/storagetest", "internal/testdb", "internal/testbucket"}

// vendors says which packages may know a foreign module; the folders of
// testers may in tests only.
var vendors = map[string]struct{ owners, testers []string }{
	"github.com/aws/aws-sdk-go-v2": {owners: []string{"s3", "internal/testbucket"}},
	"github.com/aws/smithy-go":     {owners: []string{"s3", "internal/testbucket"}},
	"github.com/fsnotify/fsnotify": {owners: []string{"capture", "catalog", "replica/apply", "cmd/tidemark"}},
	"github.com/mattn/go-sqlite3": {
		owners:  []string{"capture", "catalog", "replica/apply", "quarantine", "cmd/tidemark", "internal/testdb"},
		testers: []string{"*"},
	},
	"github.com/superfly/ltx": {owners: []string{"ltx"}},
}

func checkImports(r *report, f *file) {
	layer, known := layerOf(f.dir)
	if !known {
		r.add(f.Package, "package %s has no place in the import rules", f.dir)
		return
	}
	for _, spec := range f.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			r.add(spec.Pos(), "import %s: %v", spec.Path.Value, err)
			continue
		}
		ours, isOurs := strings.CutPrefix(name, module+"/")
		if isOurs && !mayImport(f, layer, ours) || !isOurs && !mayKnow(f, name) {
			r.add(spec.Pos(), "%s must not import %s", f.dir, ours)
		}
	}
}

// layerOf finds the nearest of dir and its parents that has a rule.
func layerOf(dir string) (layer string, known bool) {
	for dir != "" {
		if _, ok := layers[dir]; ok {
			return dir, true
		}
		dir = dir[:max(0, strings.LastIndex(dir, "/"))]
	}
	return "", false
}

func mayImport(f *file, layer, ours string) bool {
	other, known := layerOf(ours)
	allowed := layers[layer]
	switch {
	case !known:
		return false
	case other == layer, slices.Contains(allowed, "*"), slices.Contains(allowed, other):
		return true
	}
	return f.test && slices.Contains(testsMayImport, other)
}

func mayKnow(f *file, name string) bool {
	for foreign, may := range vendors {
		if within(name, foreign) {
			return anyOf(may.owners, f.dir) || f.test && anyOf(may.testers, f.dir)
		}
	}
	return true
}

func anyOf(parents []string, dir string) bool {
	return slices.ContainsFunc(parents, func(p string) bool { return p == "*" || within(dir, p) })
}

func within(dir, parent string) bool {
	return dir == parent || strings.HasPrefix(dir, parent+"/")
}
