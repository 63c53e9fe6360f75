package storage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tidemark-io/tidemark/internal/filelock"
)

// Put writes a temporary file beside the target, syncs it, gives it its name
// in one step and syncs the directory.
func (d *Dir) Put(ctx context.Context, key string, body io.ReadSeeker, cond Condition) (Object, error) {
	object, err := d.put(ctx, key, body, cond)
	if err != nil {
		return Object{}, fmt.Errorf("put %s/%s: %w", d, key, err)
	}
	return object, nil
}

func (d *Dir) put(ctx context.Context, key string, body io.ReadSeeker, cond Condition) (_ Object, err error) {
	if err := errors.Join(ctx.Err(), checkFileKey(key), cond.check()); err != nil {
		return Object{}, err
	}
	if err := makeDir(d.root); err != nil {
		return Object{}, err
	}
	root, err := os.OpenRoot(d.root)
	if err != nil {
		return Object{}, err
	}
	defer root.Close()
	dir, _ := splitKey(key)
	if err := makeDirs(root, dir); err != nil {
		return Object{}, err
	}
	temp := path.Join(dir, tempName+rand.Text())
	defer func() {
		if e := root.Remove(temp); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}()
	object, err := writeTemp(ctx, root, temp, body)
	if err != nil {
		return Object{}, err
	}
	object.Key = key
	if err := publish(ctx, root, temp, key, cond); err != nil {
		return Object{}, err
	}
	return object, syncDir(root, dir)
}

func writeTemp(ctx context.Context, root *os.Root, temp string, body io.ReadSeeker) (_ Object, err error) {
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return Object{}, fmt.Errorf("rewind body: %w", err)
	}
	f, err := root.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return Object{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(f, &bodyReader{done: ctx.Err, r: body}); err != nil {
		return Object{}, fmt.Errorf("copy body: %w", err)
	}
	// The kernel stamps files with its coarse clock, too coarse to tell quick
	// writes apart.
	now := time.Now()
	if err := root.Chtimes(temp, now, now); err != nil {
		return Object{}, err
	}
	if err := f.Sync(); err != nil {
		return Object{}, err
	}
	return describe(temp, f)
}

// publish gives the file temp the name key, if cond holds at that moment.
func publish(ctx context.Context, root *os.Root, temp, key string, cond Condition) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if cond.Absent {
		return create(root, temp, key)
	}
	mode := filelock.Shared
	if cond.ETag != "" {
		mode = filelock.Exclusive
	}
	dir, _ := splitKey(key)
	unlock, err := lock(ctx, root, dir, mode)
	if err != nil {
		return err
	}
	defer unlock()
	if cond.ETag != "" {
		if err := checkETag(root, key, cond.ETag); err != nil {
			return err
		}
	}
	return root.Rename(temp, key)
}

// create needs no lock: a link fails when the name is taken, and a swap keeps
// the name taken all the while.
func create(root *os.Root, temp, key string) error {
	err := root.Link(temp, key)
	switch {
	case errors.Is(err, fs.ErrExist):
		if info, err := root.Lstat(key); err == nil && info.IsDir() {
			return fmt.Errorf("a directory has this name: other objects are stored below it")
		}
		return fmt.Errorf("%w: the object exists", ErrPrecondition)
	case errors.Is(err, syscall.EPERM), errors.Is(err, errors.ErrUnsupported):
		return fmt.Errorf("create-only writes need a file system with hard links: %w", err)
	}
	return err
}

func checkETag(root *os.Root, key, want string) error {
	f, err := root.Open(key)
	if isMissing(err) {
		return fmt.Errorf("%w: no object to replace", ErrPrecondition)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	object, err := describe(key, f)
	if err != nil {
		return err
	}
	if object.ETag != want {
		return fmt.Errorf("%w: the object changed", ErrPrecondition)
	}
	return nil
}

// makeDir creates a directory and its parents, durably.
func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	root, err := os.OpenRoot(parent)
	if err != nil {
		return err
	}
	defer root.Close()
	return syncDir(root, "")
}

// makeDirs is makeDir below root.
func makeDirs(root *os.Root, dir string) error {
	if dir == "" {
		return nil
	}
	info, err := root.Stat(dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil, errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s or a part of it is an object, so nothing can be stored below it", dir)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent, _ := splitKey(dir)
	if err := makeDirs(root, parent); err != nil {
		return err
	}
	if err := root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(root, parent)
}

func (c Condition) check() error {
	if c.Absent && c.ETag != "" {
		return fmt.Errorf("condition names both absence and an ETag")
	}
	return nil
}

// bodyReader ends with the request.
type bodyReader struct {
	done func() error
	r    io.Reader
}

func (b *bodyReader) Read(p []byte) (int, error) {
	if err := b.done(); err != nil {
		return 0, err
	}
	return b.r.Read(p)
}
