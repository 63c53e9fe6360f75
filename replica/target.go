package replica

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrTargetExists is wrapped when a restore would write over a database, or
// beside what is left of one.
var ErrTargetExists = errors.New("the target exists")

// Existing says what a restore does with a database that is there already.
type Existing int

const (
	// RefuseExisting makes it ErrTargetExists.
	RefuseExisting Existing = iota
	// ReplaceExisting replaces it, keeping mode and owner, and removes what
	// SQLite left beside it, unless a process has it open (ErrInUse).
	ReplaceExisting
)

// sidecars are the names beside a database that SQLite would apply to it.
var sidecars = [...]string{"-wal", "-shm", "-journal"}

// target is the place of a database that is to appear whole: everything is
// written to a temporary file beside it.
type target struct {
	path     string
	existing Existing
	old      fs.FileInfo // the file that is replaced; nil: none
	temp     *os.File    // locked as long as it is open
	made     []string    // directories made for it
}

// newTarget checks that a database may appear at path.
func newTarget(path string, existing Existing) (*target, error) {
	if path == "" {
		return nil, errors.New("no path given")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if existing == ReplaceExisting {
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			path = resolved
		}
	}
	t := &target{path: path, existing: existing}
	return t, t.check()
}

// check looks at what is there now.
func (t *target) check() error {
	info, err := os.Lstat(t.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.old = nil
	case err != nil:
		return err
	case t.existing == RefuseExisting:
		return fmt.Errorf("%w: choose another path, remove it, or force its replacement", ErrTargetExists)
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file; choose another path")
	default:
		t.old = info
	}
	if t.existing == ReplaceExisting {
		return nil
	}
	for _, suffix := range sidecars {
		if _, err := os.Lstat(t.path + suffix); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %s is left of another database and SQLite would apply it to this one; remove it, or force the restore",
				ErrTargetExists, t.path+suffix)
		}
	}
	return nil
}

// open makes the temporary file, and the directories for it.
func (t *target) open() (*os.File, error) {
	if err := t.makeDirs(filepath.Dir(t.path)); err != nil {
		return nil, err
	}
	if err := removeLeftovers(t.path); err != nil {
		return nil, err
	}
	mode := fs.FileMode(0o644) // SQLite's own, less the umask
	if t.old != nil {
		mode = 0o600
	}
	temp, err := createTemp(t.path, mode)
	if err != nil {
		return nil, err
	}
	t.temp = temp
	return temp, nil
}

// makeDirs makes missing directories and remembers them.
func (t *target) makeDirs(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := t.makeDirs(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	t.made = append(t.made, dir)
	return inheritOwner(dir)
}

// finish checks the temporary file and gives it its name.
func (t *target) finish(ctx context.Context, check func(context.Context, string) error) error {
	if err := t.dress(); err != nil {
		return err
	}
	if err := t.temp.Sync(); err != nil {
		return err
	}
	if check != nil {
		if err := check(ctx, t.temp.Name()); err != nil {
			return fmt.Errorf("check restored database: %w", err)
		}
		if err := removeSidecars(t.temp.Name()); err != nil {
			return err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := t.publish(); err != nil {
		return err
	}
	return errors.Join(syncDirs(append(t.made, t.path)), t.temp.Close())
}

// publish renames the temporary file. What is there may have changed since
// the start.
func (t *target) publish() error {
	if err := t.check(); err != nil {
		return err
	}
	if t.existing == RefuseExisting {
		return link(t.temp.Name(), t.path)
	}
	if err := checkUnused(t.path); err != nil {
		return err
	}
	if err := removeSidecars(t.path); err != nil {
		return err
	}
	return os.Rename(t.temp.Name(), t.path)
}

// link is a rename that fails when the name is taken, where the file system
// can do that.
func link(from, to string) error {
	switch err := os.Link(from, to); {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%w: it appeared during the restore", ErrTargetExists)
	case err != nil:
		return os.Rename(from, to)
	}
	return os.Remove(from)
}

// discard removes whatever was made.
func (t *target) discard() error {
	var errs []error
	if t.temp != nil {
		errs = append(errs, ignoreMissing(os.Remove(t.temp.Name())), removeSidecars(t.temp.Name()))
		if err := t.temp.Close(); !errors.Is(err, fs.ErrClosed) {
			errs = append(errs, err)
		}
	}
	for i := len(t.made) - 1; i >= 0; i-- {
		if os.Remove(t.made[i]) != nil {
			break // someone else put a file there
		}
	}
	return errors.Join(errs...)
}
