package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"time"
)

// tempAge is how long an untouched temporary file may be a write in progress. A
// writer that was held up for longer fails to publish, and tries again.
const tempAge = 15 * time.Minute

// List walks the tree in key order and holds the names of one directory per
// level in memory. Temporary files that a killed process left behind are
// removed on the way.
func (d *Dir) List(ctx context.Context, prefix, after string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		err := d.list(ctx, &walk{prefix: prefix, after: after, yield: yield, done: ctx.Err})
		if err != nil && !errors.Is(err, errStopped) {
			yield(Object{}, fmt.Errorf("list %s/%s: %w", d, prefix, err))
		}
	}
}

func (d *Dir) list(ctx context.Context, w *walk) error {
	if err := errors.Join(ctx.Err(), CheckPrefix(w.prefix)); err != nil {
		return err
	}
	root, err := os.OpenRoot(d.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	dir, _ := splitKey(w.prefix)
	if dir == "" {
		return w.directory(root, "")
	}
	return w.below(root, dir, dir+"/")
}

// errStopped ends a walk whose consumer has seen enough.
var errStopped = errors.New("stopped")

// walk is one listing under way.
type walk struct {
	prefix, after string
	yield         func(Object, error) bool
	done          func() error
}

// below lists the directory name inside root, whose keys start with base.
func (w *walk) below(root *os.Root, name, base string) error {
	info, err := root.Stat(name)
	if isMissing(err) || err == nil && !info.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	sub, err := root.OpenRoot(name)
	if isMissing(err) {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	defer sub.Close()
	return w.directory(sub, base)
}

func (w *walk) directory(root *os.Root, base string) error {
	names, err := w.names(root, base)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := w.done(); err != nil {
			return err
		}
		if dir, ok := strings.CutSuffix(name, "/"); ok {
			err = w.below(root, dir, base+name)
		} else {
			err = w.file(root, name, base+name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// names returns the entries of a directory that may matter, in key order:
// directories count with their slash, so "a.b" comes before "a/b".
func (w *walk) names(root *os.Root, base string) ([]string, error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, fmt.Errorf("read directory: %w", err)
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		name, kind := entry.Name(), entry.Type()
		if strings.HasPrefix(name, tempName) {
			sweep(root, name)
		}
		if checkFileKey(name) != nil {
			continue
		}
		if kind.IsDir() {
			name += "/"
		}
		if !w.wanted(base + name) {
			continue
		}
		if kind&fs.ModeSymlink != 0 {
			return nil, fmt.Errorf("%s%s is a symbolic link: a bucket directory holds plain files only", base, name)
		}
		if kind.IsDir() || kind.IsRegular() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// wanted says that a key, or a key below a directory written with its slash,
// may be part of the listing.
func (w *walk) wanted(key string) bool {
	if !strings.HasSuffix(key, "/") {
		return strings.HasPrefix(key, w.prefix) && key > w.after
	}
	return (strings.HasPrefix(key, w.prefix) || strings.HasPrefix(w.prefix, key)) &&
		(key > w.after || strings.HasPrefix(w.after, key))
}

func (w *walk) file(root *os.Root, name, key string) error {
	info, err := root.Lstat(name)
	if isMissing(err) {
		return nil // removed since the directory was read
	}
	if err != nil {
		return err
	}
	if !w.yield(Object{Key: key, Size: info.Size(), ModTime: info.ModTime()}, nil) {
		return errStopped
	}
	return nil
}

// sweep removes a temporary file nobody has written to for long. Whether it
// works is of no concern to a listing, which may run without write permission.
func sweep(root *os.Root, name string) {
	if info, err := root.Lstat(name); err == nil && time.Since(info.ModTime()) > tempAge {
		_ = root.Remove(name)
	}
}
