package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// Socket says where status is asked. In a file it is a path, off, or the three
// keys.
type Socket struct {
	Enabled     bool   `yaml:"enabled"`
	Path        string `yaml:"path"`        // empty: a path of this process, see socket.DefaultPath
	Permissions octal  `yaml:"permissions"` // of the socket file
}

// octal is a number that is shown as file modes are.
type octal uint32

// MarshalYAML writes it as it is read.
func (o octal) MarshalYAML() ([]byte, error) { return fmt.Appendf(nil, "%#04o", uint32(o)), nil }

// UnmarshalText reads the short form.
func (s *Socket) UnmarshalText(text []byte) error {
	switch value := string(text); value {
	case "off", "false":
		s.Enabled = false
	case "on", "true", "":
		return errors.New("want the path of a socket, or off")
	default:
		s.Enabled, s.Path = true, value
	}
	return nil
}

// Validate checks the fields.
func (s Socket) Validate() error {
	if s.Path != "" && !filepath.IsAbs(s.Path) {
		return fmt.Errorf("socket: %q is not an absolute path", s.Path)
	}
	if s.Permissions&^0o777 != 0 || s.Permissions&0o600 != 0o600 {
		return fmt.Errorf("socket.permissions: %#04o does not let the owner in; use 0600", uint32(s.Permissions))
	}
	return nil
}

func (s Socket) mode() fs.FileMode { return fs.FileMode(s.Permissions) }
