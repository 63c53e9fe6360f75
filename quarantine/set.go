package quarantine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Input is what is set aside.
type Input struct {
	Database string   // path; a WAL or a rollback journal beside it belongs to it
	Files    []string // LTX files that were never uploaded, oldest first
	// Manifest describes it; ID, Database, MadeAt, Copy and Files are set here.
	Manifest Manifest
}

// Set copies a database and its files into a new entry of dir, which is made
// where it is missing. The entry appears complete and durable, or not at all;
// what is copied is not changed. No connection of this process may have the
// database open, and only one process at a time may call Set for one dir.
func Set(ctx context.Context, dir string, in Input) (Entry, error) {
	e, err := set(ctx, dir, in)
	if err != nil {
		return Entry{}, fmt.Errorf("quarantine of %s: %w", in.Database, noSpace(err, dir))
	}
	return e, nil
}

func set(ctx context.Context, dir string, in Input) (e Entry, err error) {
	if err := prepare(dir); err != nil {
		return Entry{}, err
	}
	e.Manifest = in.Manifest
	e.Manifest.Database, e.MadeAt = in.Database, time.Now().UTC()
	if e.ID, err = freeID(dir, e.Manifest); err != nil {
		return Entry{}, err
	}
	e.Path = filepath.Join(dir, e.ID)
	temp := e.Path + tempSuffix
	if err := os.Mkdir(temp, 0o700); err != nil {
		return Entry{}, err
	}
	err = fill(ctx, temp, in, &e.Manifest)
	if err == nil {
		err = os.Rename(temp, e.Path)
	}
	if err != nil {
		return Entry{}, errors.Join(err, os.RemoveAll(temp))
	}
	return e, syncDir(dir)
}

// fill puts everything into the directory of an entry and makes it durable.
func fill(ctx context.Context, temp string, in Input, m *Manifest) error {
	var err error
	if m.Copy, err = copyDatabase(ctx, in.Database, filepath.Join(temp, databaseName)); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(temp, ltxName), 0o700); err != nil {
		return err
	}
	for _, path := range in.Files {
		if err := copyFile(ctx, path, filepath.Join(temp, ltxName, filepath.Base(path))); err != nil {
			return err
		}
	}
	if m.Files, err = describe(ctx, temp); err != nil {
		return err
	}
	if err := writeJSON(temp, manifestName, m); err != nil {
		return err
	}
	return syncDir(filepath.Join(temp, ltxName))
}

// prepare makes dir and removes what killed processes left in it.
func prepare(dir string) error {
	switch err := os.Mkdir(dir, 0o700); {
	case errors.Is(err, fs.ErrExist):
	case err != nil:
		return err
	default:
		if err := syncDir(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		if strings.HasSuffix(n.Name(), tempSuffix) {
			if err := os.RemoveAll(filepath.Join(dir, n.Name())); err != nil {
				return fmt.Errorf("remove what an earlier process left: %w", err)
			}
		}
	}
	return nil
}

// freeID names a new entry.
func freeID(dir string, m Manifest) (string, error) {
	id := fmt.Sprintf("%s-g%d-%s-%s", m.MadeAt.Format("20060102T150405Z"), m.Local.Generation, m.First, m.Last)
	for n := 1; ; n++ {
		name := id
		if n > 1 {
			name = fmt.Sprintf("%s-%d", id, n)
		}
		if _, err := os.Lstat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
	}
}

// describe lists the files of an entry, in the order of their names.
func describe(ctx context.Context, dir string) ([]File, error) {
	files := []File{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		size, sum, err := hashFile(ctx, path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files = append(files, File{Name: filepath.ToSlash(name), Size: size, SHA256: sum})
		return err
	})
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, err
}

// writeJSON puts a small file in place, whole and durable.
func writeJSON(dir, name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	temp := filepath.Join(dir, name+tempSuffix)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temp, filepath.Join(dir, name))
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(temp)))
	}
	return syncDir(dir)
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
