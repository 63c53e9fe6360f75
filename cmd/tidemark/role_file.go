package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// roleFile tells other processes the role of a node: a JSON object in a file
// that is replaced as a whole, so that nobody reads half of one.
type roleFile struct {
	path string // empty: none

	mu      sync.Mutex
	written bool
	last    roleNote
}

// roleNote is what the file holds. Who reads it must not go by role alone: a
// process that was killed leaves the file behind, so it ends at until.
type roleNote struct {
	Role       string    `json:"role"`
	Generation uint64    `json:"generation"`
	Remaining  int64     `json:"remaining_ms"`   // of the lease, when it was written
	Until      time.Time `json:"until,omitzero"` // when that is over, by the clock of this machine
	Primary    string    `json:"primary,omitempty"`
}

// Write replaces the file if it would say something else: another role, or a
// lease that was renewed.
func (f *roleFile) Write(r RoleReport) error {
	if f.path == "" {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	note := roleNote{Role: r.Role, Generation: r.Generation, Remaining: r.Remaining, Primary: r.Primary}
	if r.Remaining > 0 {
		note.Until = time.Now().Add(time.Duration(r.Remaining) * time.Millisecond).UTC()
	}
	if f.written && f.says(note) {
		return nil
	}
	text, err := json.Marshal(note)
	if err == nil {
		err = replaceFile(f.path, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("role-file: %w", err)
	}
	f.written, f.last = true, note
	return nil
}

// says tells whether the file holds the same, up to the time that goes by.
func (f *roleFile) says(n roleNote) bool {
	const same = 50 * time.Millisecond // two looks at one lease
	apart := n.Until.Sub(f.last.Until)
	old := f.last
	old.Until, old.Remaining, n.Until, n.Remaining = time.Time{}, 0, time.Time{}, 0
	return n == old && -same < apart && apart < same
}

// replaceFile gives a file new content, at once. Everybody may read it.
func replaceFile(path string, text []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(text)
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}
