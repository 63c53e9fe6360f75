package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tidemark-io/tidemark/internal/filelock"
)

const (
	reserved = ".tidemark-" // names that start so are ours: never keys, never listed
	tempName = reserved + "tmp-"
	lockName = reserved + "lock"
)

// Dir is a Bucket in a local directory: one file an object, under its key.
// Conditions hold between processes that share the directory. Files get mode
// 0600, directories 0700. A root that does not exist is an empty bucket; the
// first Put makes it. Because files and directories share one name space, an
// object "a" and an object "a/b" cannot both be there.
type Dir struct {
	root string // absolute
}

// NewDir returns the bucket in the directory root. It refuses a path that
// exists and is no directory, and creates nothing.
func NewDir(root string) (*Dir, error) {
	if root == "" || strings.IndexByte(root, 0) >= 0 {
		return nil, fmt.Errorf("bucket directory %q: not a path", root)
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("bucket directory %q: %w", root, err)
	}
	switch info, err := os.Stat(abs); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("bucket directory: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("bucket directory %s: not a directory", abs)
	}
	return &Dir{root: abs}, nil
}

// String returns the file URL of the directory.
func (d *Dir) String() string { return "file://" + filepath.ToSlash(d.root) }

// Get opens the file of key. A whole or partial read never sees a mixture of
// two writes, because a file is never changed under its name.
func (d *Dir) Get(ctx context.Context, key string, part Range) (io.ReadCloser, Object, error) {
	body, object, err := d.get(ctx, key, part)
	if err != nil {
		return nil, Object{}, fmt.Errorf("get %s/%s: %w", d, key, err)
	}
	return body, object, nil
}

func (d *Dir) get(ctx context.Context, key string, part Range) (io.ReadCloser, Object, error) {
	if err := errors.Join(ctx.Err(), checkFileKey(key), part.check()); err != nil {
		return nil, Object{}, err
	}
	root, err := os.OpenRoot(d.root)
	if err != nil {
		return nil, Object{}, missing(err)
	}
	defer root.Close()
	f, err := root.Open(key)
	if err != nil {
		return nil, Object{}, missing(err)
	}
	object, err := describe(key, f)
	if err != nil {
		return nil, Object{}, errors.Join(err, f.Close())
	}
	length := part.Length
	if length == 0 || length > object.Size-part.Offset {
		length = max(object.Size-part.Offset, 0)
	}
	return &fileBody{ctx: ctx.Err, r: io.NewSectionReader(f, part.Offset, length), f: f}, object, nil
}

// Delete removes the files of keys.
func (d *Dir) Delete(ctx context.Context, keys ...string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete from %s: %w", d, err)
	}
	root, err := os.OpenRoot(d.root)
	if errors.Is(err, fs.ErrNotExist) {
		return checkKeys(keys)
	}
	if err != nil {
		return fmt.Errorf("delete from %s: %w", d, err)
	}
	defer root.Close()
	var errs []error
	for _, key := range keys {
		if err := errors.Join(ctx.Err(), checkFileKey(key)); err != nil {
			errs = append(errs, fmt.Errorf("delete %s/%s: %w", d, key, err))
		} else if err := remove(ctx, root, key); err != nil {
			errs = append(errs, fmt.Errorf("delete %s/%s: %w", d, key, err))
		}
	}
	return errors.Join(errs...)
}

func remove(ctx context.Context, root *os.Root, key string) error {
	info, err := root.Lstat(key)
	if isMissing(err) || err == nil && info.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	dir, _ := splitKey(key)
	unlock, err := lock(ctx, root, dir, filelock.Shared)
	if err != nil {
		return err
	}
	defer unlock()
	if err := root.Remove(key); err != nil && !isMissing(err) {
		return err
	}
	return syncDir(root, dir)
}

func checkKeys(keys []string) error {
	var errs []error
	for _, key := range keys {
		errs = append(errs, checkFileKey(key))
	}
	return errors.Join(errs...)
}

// checkFileKey is CheckKey, and keeps the names this package uses itself.
func checkFileKey(key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	for element := range strings.SplitSeq(key, "/") {
		if strings.HasPrefix(element, reserved) {
			return fmt.Errorf("key %q: names that start with %q are reserved", key, reserved)
		}
	}
	return nil
}

func (r Range) check() error {
	if r.Offset < 0 || r.Length < 0 {
		return fmt.Errorf("range %d+%d: negative", r.Offset, r.Length)
	}
	return nil
}

// isMissing says that no object can be under the name: it is not there, or
// an object stands where its directory would be.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func missing(err error) error {
	if isMissing(err) {
		return fmt.Errorf("%w", ErrNotFound)
	}
	return err
}
