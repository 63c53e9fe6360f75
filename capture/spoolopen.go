package capture

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemark-io/tidemark/ltx"
)

// openSpool reads what an earlier process left in dir: files that verify and
// continue each other. Everything from the first file that does not is
// removed, and named in dropped; so are drafts.
func openSpool(dir string) (s *Spool, dropped []string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("open spool: %w", err)
	}
	s = &Spool{dir: dir, changed: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("open spool: %w", err)
	}
	var found []spooled
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		f, err := verifySpooled(path)
		if err == nil && !strings.HasSuffix(path, ".tmp") && f.Path == path {
			found = append(found, f)
			continue
		}
		if !strings.HasSuffix(path, ".tmp") {
			dropped = append(dropped, path)
		}
		if err := os.Remove(path); err != nil {
			return nil, nil, fmt.Errorf("open spool: %w", err)
		}
	}
	slices.SortFunc(found, func(a, b spooled) int { return cmp.Compare(a.Info.Max, b.Info.Max) })
	n := chained(found)
	for _, f := range found[n:] {
		dropped = append(dropped, f.Path)
		if err := os.Remove(f.Path); err != nil {
			return nil, nil, fmt.Errorf("open spool: %w", err)
		}
	}
	s.files, s.old = found[:n], n
	for _, f := range s.files {
		s.notBefore(f.Info.ModTime)
	}
	return s, dropped, nil
}

// chained returns how many files from the first on continue each other.
func chained(files []spooled) int {
	for i := 1; i < len(files); i++ {
		prev, f := files[i-1], files[i]
		next := f.Info.Max == prev.Info.Max+1
		if !next || !f.Info.IsSnapshot() && f.pre != prev.Pos.PostApplyChecksum {
			return i
		}
	}
	return len(files)
}

// verifySpooled reads a whole file of the spool.
func verifySpooled(path string) (s spooled, err error) {
	f, err := os.Open(path)
	if err != nil {
		return spooled{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h, t, err := ltx.VerifyFile(f)
	if err != nil {
		return spooled{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return spooled{}, err
	}
	s = describe(filepath.Dir(path), h, t.PostApplyChecksum, info)
	s.stamp, err = stampOf(path)
	return s, err
}
