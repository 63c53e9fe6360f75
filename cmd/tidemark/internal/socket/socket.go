// Package socket is the Unix socket of a running sidecar: where it lies, how a
// dead one is told from a live one, and HTTP over it. Who may open the socket
// may ask everything, so it is made for its owner alone. The package knows
// nothing of what is asked.
package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// ErrInUse is wrapped when a live process listens on the path.
var ErrInUse = errors.New("socket in use")

// maxPath is what fits into a socket address on every system.
const maxPath = 103

const suffix = ".sock"

// DefaultDir is the directory in which this user's sidecars put their sockets.
func DefaultDir() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "tidemark")
	}
	if os.Getuid() == 0 {
		return "/run/tidemark"
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("tidemark-%d", os.Getuid()))
}

// DefaultPath is the socket of this process in DefaultDir.
func DefaultPath() string {
	return filepath.Join(DefaultDir(), strconv.Itoa(os.Getpid())+suffix)
}

// MakeDefaultDir makes DefaultDir with mode 0700. It refuses one that another
// user owns or may enter.
func MakeDefaultDir() error {
	dir := DefaultDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("socket directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("socket directory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || ok && int(stat.Uid) != os.Getuid() {
		return fmt.Errorf("socket directory %s: it must be a directory of user %d with mode 0700", dir, os.Getuid())
	}
	return nil
}

// Find returns the sockets in DefaultDir on which somebody listens.
func Find() ([]string, error) {
	entries, err := os.ReadDir(DefaultDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("socket directory: %w", err)
	}
	var live []string
	for _, entry := range entries {
		path := filepath.Join(DefaultDir(), entry.Name())
		if filepath.Ext(path) == suffix && alive(path) {
			live = append(live, path)
		}
	}
	return live, nil
}
