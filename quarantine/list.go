package quarantine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// List returns the entries of dir, oldest first; none if there is no dir. One
// that cannot be read is among them, with its Problem.
func List(dir string) ([]Entry, error) {
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list quarantine: %w", err)
	}
	var entries []Entry
	for _, n := range names {
		path := filepath.Join(dir, n.Name())
		if !n.IsDir() || strings.HasSuffix(path, tempSuffix) {
			continue
		}
		e := read(path)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue // it was removed meanwhile
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Find returns the entry of that ID. It wraps ErrUnknown.
func Find(dir, id string) (Entry, error) {
	entries, err := List(dir)
	if err != nil {
		return Entry{}, err
	}
	for _, e := range entries {
		if e.ID == id {
			return e, nil
		}
	}
	return Entry{}, fmt.Errorf("%s: %w", id, ErrUnknown)
}

// Pending returns how many entries of dir nobody has acknowledged, and how many
// transactions are in them.
func Pending(dir string) (entries int, transactions uint64, err error) {
	all, err := List(dir)
	for _, e := range all {
		if e.Acknowledged.IsZero() {
			entries++
			transactions += e.Transactions()
		}
	}
	return entries, transactions, err
}

// Ack notes that somebody has seen the entry, which does not remove it.
func Ack(dir, id string) error {
	e, err := Find(dir, id)
	if err != nil || !e.Acknowledged.IsZero() {
		return err
	}
	err = writeJSON(e.Path, ackName, struct {
		At time.Time `json:"at"`
	}{time.Now().UTC()})
	if err != nil {
		return fmt.Errorf("acknowledge %s: %w", id, noSpace(err, dir))
	}
	return nil
}

// Remove deletes an acknowledged entry. It wraps ErrNotAcknowledged.
func Remove(dir, id string) error {
	e, err := Find(dir, id)
	if err != nil {
		return err
	}
	if e.Acknowledged.IsZero() {
		return fmt.Errorf("remove %s: %w", id, ErrNotAcknowledged)
	}
	temp := e.Path + tempSuffix
	if err := errors.Join(os.Rename(e.Path, temp), syncDir(dir)); err != nil {
		return fmt.Errorf("remove %s: %w", id, err)
	}
	if err := os.RemoveAll(temp); err != nil {
		return fmt.Errorf("remove %s: %w", id, err)
	}
	return nil
}

// read reads one entry.
func read(path string) Entry {
	e := Entry{Path: path}
	err := readJSON(path, manifestName, &e.Manifest)
	if err == nil {
		err = e.complete()
	}
	if err != nil {
		e = Entry{Path: path, Problem: err.Error()}
	}
	e.ID = filepath.Base(path)
	var ack struct {
		At time.Time `json:"at"`
	}
	for name, v := range map[string]any{ackName: &ack, uploadName: &e.Uploaded} {
		if err := ignoreMissing(readJSON(path, name, v)); err != nil && e.Problem == "" {
			e.Problem = err.Error()
		}
	}
	e.Acknowledged = ack.At
	return e
}

// complete checks that each file of the entry is there in its size.
func (e Entry) complete() error {
	for _, f := range e.Files {
		if !filepath.IsLocal(filepath.FromSlash(f.Name)) {
			return fmt.Errorf("%s names %q", filepath.Join(e.Path, manifestName), f.Name)
		}
		path := filepath.Join(e.Path, filepath.FromSlash(f.Name))
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if info.Size() != f.Size {
			return fmt.Errorf("%s has %d bytes, was set aside with %d", path, info.Size(), f.Size)
		}
	}
	return nil
}

func readJSON(dir, name string, v any) error {
	path := filepath.Join(dir, name)
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
