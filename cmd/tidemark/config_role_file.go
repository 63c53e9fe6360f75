package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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
			if sameFile(path, c.HA.RoleFile) || sameFile(path, filepath.Dir(c.HA.RoleFile)) {
				return fmt.Errorf("role-file: %s belongs to the database of dbs[%d]; choose another path", c.HA.RoleFile, i)
			}
		}
	}
	return nil
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
	if info, err := os.Lstat(h.RoleFile); err == nil && !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0 {
		return usagef("role-file: %s is there and no file; choose another path", h.RoleFile)
	}
	return nil
}
