package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// ofProcess are names such as DefaultPath makes.
var ofProcess = regexp.MustCompile(`^[0-9]+\.sock$`)

// Listener is a socket that is removed when it is closed, if it is still the
// one under its name.
type Listener struct {
	*net.UnixListener
	path string
	made os.FileInfo
}

// Listen makes the socket at path, its directory too where it is missing. A
// socket nobody listens on is replaced, and in DefaultDir those that killed
// processes left are removed; a live one is ErrInUse; any other kind
// of file is left alone.
func Listen(path string, mode fs.FileMode) (*Listener, error) {
	if len(path) > maxPath {
		return nil, fmt.Errorf("socket %s: the path has %d bytes, at most %d are possible", path, len(path), maxPath)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	unlock, err := lock(dir)
	if err != nil {
		return nil, fmt.Errorf("socket %s: lock directory: %w", path, err)
	}
	defer unlock()
	if err := vacant(path); err != nil {
		return nil, err
	}
	if filepath.Clean(dir) == filepath.Clean(DefaultDir()) {
		sweep(dir)
	}
	l, err := bind(path, mode)
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	return l, nil
}

// sweep removes the sockets of processes that ended without doing so. The lock
// on dir keeps others from making one meanwhile; what cannot be removed harms
// nobody.
func sweep(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if ofProcess.MatchString(entry.Name()) && entry.Type() == fs.ModeSocket && !alive(path) {
			_ = os.Remove(path)
		}
	}
}

// Close stops listening and removes the socket.
func (l *Listener) Close() error {
	err := l.UnixListener.Close()
	if now, statErr := os.Lstat(l.path); statErr == nil && os.SameFile(now, l.made) {
		err = errors.Join(err, os.Remove(l.path))
	}
	return err
}

// bind makes the socket in a directory of its own and moves it to its place, so
// that it never stands there with wider permissions.
func bind(path string, mode fs.FileMode) (*Listener, error) {
	scratch, err := os.MkdirTemp(filepath.Dir(path), ".t")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	name := filepath.Join(scratch, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	made, err := place(name, path, mode)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &Listener{UnixListener: l, path: path, made: made}, nil
}

func place(name, path string, mode fs.FileMode) (os.FileInfo, error) {
	if err := os.Chmod(name, mode); err != nil {
		return nil, err
	}
	if err := os.Rename(name, path); err != nil {
		return nil, err
	}
	return os.Lstat(path)
}

// vacant tells whether path may be taken.
func vacant(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("socket %s: another kind of file is there; remove it or choose another path", path)
	case alive(path):
		return fmt.Errorf("%w: %s answers on %s; stop it or choose another path", ErrInUse, owner(path), path)
	}
	return nil
}

func alive(path string) bool {
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist)
	}
	_ = conn.Close()
	return true
}

// lock keeps two processes from replacing the same dead socket at once.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}
