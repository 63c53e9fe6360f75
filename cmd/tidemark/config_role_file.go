package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidemark-io/tidemark/capture"
)

// checkRoleFile refuses a role-file in the place of a database or of what
// belongs to one: it would be replaced.
func (c Config) checkRoleFile() error {
	if c.HA.RoleFile == "" {
		return nil
	}
	for i, d := range c.Databases {
		if d.Path == "" {
			continue
		}
		own := []string{d.Path, capture.StateDir(d.Path)}
		for _, beside := range []string{"-wal", "-shm", "-journal"} {
			own = append(own, d.Path+beside)
		}
		for _, path := range own {
			if sameFile(path, c.HA.RoleFile) || lies(c.HA.RoleFile, path) {
				return fmt.Errorf("role-file: %s belongs to the database of dbs[%d]; choose another path", c.HA.RoleFile, i)
			}
		}
	}
	for i, d := range c.Databases {
		if l, err := d.Replica.locate(); err == nil && l.dir != "" && lies(c.HA.RoleFile, l.dir) {
			return fmt.Errorf("role-file: %s lies in the replica of dbs[%d]; choose another path", c.HA.RoleFile, i)
		}
	}
	return nil
}

// lies tells whether a path is below another one.
func lies(path, dir string) bool {
	return strings.HasPrefix(resolved(path), strings.TrimSuffix(resolved(dir), "/")+"/")
}

// findRoleFile tells whether the role-file can be made on this machine, as far
// as can be seen without making it.
func (h Availability) findRoleFile() error {
	if h.RoleFile == "" {
		return nil
	}
	dir := filepath.Dir(h.RoleFile)
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return usagef("role-file: the directory %s does not exist; make it, or choose another path", dir)
	case err != nil:
		return fmt.Errorf("role-file: %w", err)
	case !info.IsDir():
		return usagef("role-file: %s is no directory", dir)
	}
	switch info, err := os.Stat(h.RoleFile); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("role-file: %w", err)
	case !info.Mode().IsRegular():
		return usagef("role-file: %s is there and no file; choose another path", h.RoleFile)
	case info.Size() == 0:
		return nil
	}
	var note roleNote
	text, err := readStart(h.RoleFile, 4096)
	if err != nil {
		return fmt.Errorf("role-file: %w", err)
	}
	if json.Unmarshal(text, &note) != nil || note.Role == "" {
		return usagef("role-file: %s is there and tells no role; it would be replaced: remove it, or choose another path", h.RoleFile)
	}
	return nil
}

// readStart returns up to so many bytes of a file.
func readStart(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, most))
	return text, errors.Join(err, f.Close())
}
