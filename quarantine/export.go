package quarantine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Export writes the quarantined database to a new file at out, which appears
// complete or not at all. It never replaces a file, and refuses a place beside
// which a WAL or a journal lies: SQLite would take it for the database's own.
// It wraps ErrDamaged if the copy is not what was set aside.
func (e Entry) Export(ctx context.Context, out string) error {
	if err := e.export(ctx, out); err != nil {
		return fmt.Errorf("export %s to %s: %w", e.ID, out, noSpace(err, filepath.Dir(out)))
	}
	return nil
}

func (e Entry) export(ctx context.Context, out string) error {
	if e.Problem != "" {
		return fmt.Errorf("%w: %s; what is left is in %s", ErrDamaged, e.Problem, e.Path)
	}
	for _, part := range []string{"", "-wal", "-journal", "-shm"} {
		if _, err := os.Lstat(out + part); err == nil {
			return fmt.Errorf("%s exists; give a path that is free", out+part)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	temp := filepath.Join(filepath.Dir(out), "."+filepath.Base(out)+".tidemark-export-"+strings.ToLower(rand.Text()[:12]))
	err := copyFile(ctx, e.Database(), temp)
	if err == nil {
		err = e.proven(ctx, temp)
	}
	if err == nil {
		err = place(temp, out)
	}
	if err = errors.Join(err, ignoreMissing(os.Remove(temp))); err != nil {
		return err
	}
	return syncDir(filepath.Dir(out))
}

// proven checks that a file is the database that was set aside.
func (e Entry) proven(ctx context.Context, path string) error {
	size, sum, err := hashFile(ctx, path)
	if err != nil {
		return err
	}
	for _, f := range e.Files {
		if f.Name == databaseName && f.Size == size && f.SHA256 == sum {
			return nil
		}
	}
	return fmt.Errorf("%w: %s is not what was set aside; copy it by hand to look at what is left", ErrDamaged, e.Database())
}

// place gives a file its name unless that is taken, also where there are no
// hard links.
func place(temp, out string) error {
	err := os.Link(temp, out)
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	if _, err := os.Lstat(out); err == nil {
		return fmt.Errorf("%s: %w", out, fs.ErrExist)
	}
	return os.Rename(temp, out)
}
