package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/replica/apply"
)

// modeName is the file in the state directory that keeps the mode of a database
// while chmod stops its writers.
const modeName = "mode"

// fence keeps local processes from writing to a copy, as far as fence-local
// says. A writer that cannot be kept out is set aside later.
func (f *followed) fence(ctx context.Context, c *apply.Copy) error {
	switch f.node.cfg.HA.FenceLocal {
	case fenceLock:
		ctx, cancel := context.WithTimeout(ctx, lockPatience)
		defer cancel()
		if err := c.Lock(ctx); err != nil {
			f.log.Warn("local writers are not kept out", "error", err)
		}
	case fenceChmod:
		return f.forbid()
	}
	return nil
}

// forbid takes the permission to write from the file.
func (f *followed) forbid() error {
	info, err := os.Stat(f.cfg.Path)
	if err != nil {
		return err
	}
	kept := filepath.Join(capture.StateDir(f.cfg.Path), modeName)
	if _, err := os.Stat(kept); errors.Is(err, fs.ErrNotExist) {
		if err := replaceFile(kept, fmt.Appendf(nil, "%o\n", info.Mode().Perm())); err != nil {
			return fmt.Errorf("fence-local: %w", err)
		}
	}
	return os.Chmod(f.cfg.Path, info.Mode().Perm()&^0o222)
}

// unfence gives back the permission that forbid took, if it did.
func (f *followed) unfence() error {
	kept := filepath.Join(capture.StateDir(f.cfg.Path), modeName)
	text, err := os.ReadFile(kept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("fence-local: %w", err)
	}
	var mode uint64
	if _, err := fmt.Sscanf(string(text), "%o", &mode); err != nil {
		return fmt.Errorf("fence-local: %s holds %s; give the database its mode and remove the file", kept, strconv.Quote(string(text)))
	}
	if err := os.Chmod(f.cfg.Path, fs.FileMode(mode)&fs.ModePerm); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("fence-local: %w", err)
	}
	return os.Remove(kept)
}
