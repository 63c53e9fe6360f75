package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/replica"
)

// restoredName is the file in the state directory that says which state of the
// replica a database was restored to: "TXID CHECKSUM\n". A sidecar that goes on
// with the database starts from there.
const restoredName = "restored"

// notePosition leaves the position beside a database that was restored to an
// older state. The newest one needs none; a former note is removed then.
func notePosition(path string, r replica.RestoreResult) error {
	path = resolved(path)
	dir := capture.StateDir(path)
	if r.Pos.TXID >= r.Newest {
		err := os.Remove(filepath.Join(dir, restoredName))
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("%s was restored, but an older note beside it could not be removed; remove it before a sidecar starts: %w", path, err)
	}
	text := fmt.Sprintf("%s %s\n", r.Pos.TXID, r.Pos.PostApplyChecksum)
	if err := writeNote(path, dir, text); err != nil {
		return fmt.Errorf("%s was restored, but a sidecar cannot go on from there without a note of its position: %w", path, err)
	}
	return nil
}

// writeNote writes the note, readable by the owner of the database only.
func writeNote(path, dir, text string) error {
	if err := os.Mkdir(dir, 0o700); err == nil {
		if err := sameOwner(dir, path); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	name := filepath.Join(dir, restoredName)
	f, err := os.CreateTemp(dir, restoredName+"-") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close(), sameOwner(f.Name(), path))
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(dir)
}

// sameOwner gives name the owner of the database, if we are root.
func sameOwner(name, database string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(database)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	err = os.Chown(name, int(stat.Uid), int(stat.Gid))
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
