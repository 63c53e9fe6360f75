package replica

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tidemark-io/tidemark/internal/filelock"
)

// tempInfix is between the name of a database and the random end of the name
// of a temporary file.
const tempInfix = ".tidemark-restore-"

func tempPrefix(path string) string { return "." + filepath.Base(path) + tempInfix }

// createTemp makes a temporary file beside path and locks it, which tells
// other restores that it is no leftover.
func createTemp(path string, mode fs.FileMode) (*os.File, error) {
	for {
		name := filepath.Join(filepath.Dir(path), tempPrefix(path)+strings.ToLower(rand.Text()[:12]))
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		kept, err := filelock.ExclusiveNamed(f) // another restore may have found it unlocked
		if kept {
			return f, nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, errors.Join(err, ignoreMissing(os.Remove(name)))
		}
	}
}

// removeLeftovers removes the temporary files of earlier restores to path that
// were killed.
func removeLeftovers(path string) error {
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), tempPrefix(path)) || !e.Type().IsRegular() {
			continue
		}
		if err := removeLeftover(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("remove what an earlier restore left: %w", err)
		}
	}
	return nil
}

func removeLeftover(name string) error {
	for _, suffix := range sidecars {
		if base, ok := strings.CutSuffix(name, suffix); ok {
			if _, err := os.Lstat(base); err == nil {
				return nil // handled with the file it belongs to
			}
			return ignoreMissing(os.Remove(name))
		}
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return ignoreMissing(err)
	}
	defer f.Close()
	err = filelock.Exclusive(f)
	if errors.Is(err, filelock.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(removeSidecars(name), ignoreMissing(os.Remove(name)))
}

func removeSidecars(path string) error {
	var errs []error
	for _, suffix := range sidecars {
		errs = append(errs, ignoreMissing(os.Remove(path+suffix)))
	}
	return errors.Join(errs...)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// dress gives the temporary file the mode and owner of the file it replaces;
// a new file made by root gets the owner of its directory. Where changing the
// owner is not permitted, the file stays ours.
func (t *target) dress() error {
	if t.old == nil {
		return inheritOwner(t.temp.Name())
	}
	if err := setOwner(t.temp.Name(), t.old); err != nil {
		return err
	}
	return t.temp.Chmod(t.old.Mode().Perm())
}

// inheritOwner gives name the owner of its directory, if we are root.
func inheritOwner(name string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	dir, err := os.Stat(filepath.Dir(name))
	if err != nil {
		return err
	}
	return setOwner(name, dir)
}

func setOwner(name string, of fs.FileInfo) error {
	stat, ok := of.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	err := os.Chown(name, int(stat.Uid), int(stat.Gid))
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// syncDirs makes the names durable.
func syncDirs(names []string) error {
	for _, name := range names {
		dir, err := os.Open(filepath.Dir(name))
		if err != nil {
			return err
		}
		if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
			return fmt.Errorf("sync directory: %w", err)
		}
	}
	return nil
}
