package quarantine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// copyDatabase makes a copy of a database that stands for itself: what is in
// its WAL is brought into it, an unfinished transaction is rolled back.
func copyDatabase(ctx context.Context, from, to string) (Copy, error) {
	from, err := filepath.EvalSymlinks(from) // the WAL lies beside the file itself
	if err != nil {
		return Copy{}, err
	}
	for tries := 1; ; tries++ {
		err := copyStill(ctx, from, to)
		if err == nil {
			break
		}
		if !errors.Is(err, errMoved) || tries == copyTries {
			return Copy{}, err
		}
	}
	c, err := settle(ctx, to)
	if err != nil {
		return Copy{}, fmt.Errorf("bring the copy to its last commit: %w", err)
	}
	return c, nil
}

// copyTries is how often a copy is begun because somebody wrote meanwhile.
const copyTries = 3

// parts are the files that a database consists of, by what follows its name.
var parts = []string{"", "-wal", "-journal"}

// errMoved means that somebody wrote to the database while it was copied.
var errMoved = errors.New("it is being written to")

// copyStill copies the files of a database while nobody changes the main one.
// A WAL may grow meanwhile: what is torn at its end is no commit.
func copyStill(ctx context.Context, from, to string) (err error) {
	thaw, err := freeze(ctx, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, thaw()) }()
	before, err := look(from)
	if err != nil {
		return err
	}
	for _, part := range parts {
		err := copyFile(ctx, from+part, to+part)
		if part != "" && errors.Is(err, fs.ErrNotExist) {
			err = os.RemoveAll(to + part) // of an earlier try
		}
		if err != nil {
			return err
		}
	}
	after, err := look(from)
	if err == nil && before != after {
		err = fmt.Errorf("copy %s: %w; stop the application", from, errMoved)
	}
	return err
}

// glance tells whether a database file was written to, or a journal of it came
// or went.
type glance struct {
	inode      uint64
	size       int64
	mtime      unix.Timespec
	wal, undo  uint64 // inodes; 0: none
	undoWrites unix.Timespec
}

func look(path string) (glance, error) {
	var file, wal, undo unix.Stat_t
	if err := unix.Stat(path, &file); err != nil {
		return glance{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	for part, stat := range map[string]*unix.Stat_t{"-wal": &wal, "-journal": &undo} {
		if err := unix.Stat(path+part, stat); err != nil && !errors.Is(err, unix.ENOENT) {
			return glance{}, &os.PathError{Op: "stat", Path: path + part, Err: err}
		}
	}
	return glance{file.Ino, file.Size, file.Mtim, wal.Ino, undo.Ino, undo.Mtim}, nil
}

// copyFile makes a durable copy, which shares its blocks with the original
// where the file system can do that.
func copyFile(ctx context.Context, from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if !share(out, in) {
		if _, err := io.Copy(out, reader{ctx.Err, in}); err != nil {
			return fmt.Errorf("copy %s: %w", from, err)
		}
	}
	return out.Sync()
}

// hashFile returns the size and the SHA-256 of a file.
func hashFile(ctx context.Context, path string) (size int64, sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, reader{ctx.Err, f})
	return size, hex.EncodeToString(h.Sum(nil)), err
}

// reader reads until canceled says an error.
type reader struct {
	canceled func() error
	r        io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.canceled(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// noSpace adds to a full disk how full it is.
func noSpace(err error, dir string) error {
	var stat unix.Statfs_t
	if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) || unix.Statfs(dir, &stat) != nil {
		return err
	}
	return fmt.Errorf("%w; %d MiB are free on the file system of %s: make room there, nothing was changed",
		err, stat.Bavail*uint64(stat.Bsize)>>20, dir)
}
