package discover

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// magic is how every SQLite database begins.
const magic = "SQLite format 3\x00"

// enter follows a directory from now on, and reads it: what is made between
// the two is seen twice rather than never.
func (f *Finder) enter(dir string) error {
	d := f.dirs[dir]
	if d == nil {
		d = &directory{stop: func() {}, names: map[string]struct{}{}}
		f.dirs[dir] = d
		f.list(dir)
	}
	if f.o.Watch != nil {
		d.stop()
		var err error
		d.stop, err = f.o.Watch(dir, func(name string) { f.changed(dir, name) })
		if d.poll = err != nil || remote(dir); d.poll {
			f.polls.Store(true)
		}
	}
	return f.read(dir, d)
}

// list notes path in the directory it is in, unlist removes it there.
func (f *Finder) list(path string) {
	if d := f.dirs[filepath.Dir(path)]; d != nil {
		d.names[filepath.Base(path)] = struct{}{}
	}
}

func (f *Finder) unlist(path string) {
	if d := f.dirs[filepath.Dir(path)]; d != nil {
		delete(d.names, filepath.Base(path))
	}
}

// changed notes what an event says. It never blocks.
func (f *Finder) changed(dir, name string) {
	if ofSQLite(name) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note(filepath.Join(dir, name))
}

// ofSQLite tells the names of files that SQLite keeps beside a database, which
// come and go with every transaction.
func ofSQLite(name string) bool {
	return strings.HasSuffix(name, "-wal") || strings.HasSuffix(name, "-shm") || strings.HasSuffix(name, "-journal")
}

// ofOurs tells the names of state directories and of files being restored.
func ofOurs(name string) bool {
	state := strings.HasSuffix(name, "-tidemark") || strings.HasSuffix(name, "-litestream")
	return strings.HasPrefix(name, ".") && (state || strings.Contains(name, ".tidemark-restore-"))
}

// lookAtDirectory reads a directory and follows it.
func (f *Finder) lookAtDirectory(dir string) {
	root := dir == f.o.Root
	skipped := ofOurs(filepath.Base(dir)) || slices.Contains(f.o.Except, dir)
	if !root && (!f.o.Recursive || skipped) {
		return
	}
	err := f.enter(dir)
	switch {
	case err == nil:
	case !gone(err):
		f.complain(dir, "directory cannot be read, what is in it is not replicated", err)
	case root: // Watch tells when it is there
		f.complain(dir, "directory does not exist, waiting for it", err)
		f.leave(dir, f.lost)
	default:
		f.drop(dir)
	}
}

// drop ends following a directory and all that is below it.
func (f *Finder) drop(dir string) {
	f.leave(dir, f.lost)
	f.dirs[dir].stop()
	delete(f.dirs, dir)
	f.unlist(dir)
}

// leave ends following all that is below a directory, and calls lost for every
// database.
func (f *Finder) leave(dir string, lost func(path string)) {
	for name := range f.dirs[dir].names {
		path := filepath.Join(dir, name)
		if f.known[path] {
			lost(path)
		}
		if d := f.dirs[path]; d != nil {
			f.leave(path, lost)
			d.stop()
			delete(f.dirs, path)
			f.unlist(path)
		}
	}
}

func (f *Finder) lost(path string) {
	f.known[path] = false
	f.sink.Remove(path)
}

// read looks at all entries of a directory that are new or gone.
func (f *Finder) read(dir string, d *directory) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	there := make(map[string]struct{}, len(entries))
	for _, e := range entries {
		there[e.Name()] = struct{}{}
		path := filepath.Join(dir, e.Name())
		followed := f.known[path] && e.Type().IsRegular() || f.dirs[path] != nil && e.IsDir()
		if !followed && !ofSQLite(e.Name()) {
			f.look(path)
		}
	}
	for name := range d.names {
		if _, ok := there[name]; !ok {
			f.look(filepath.Join(dir, name))
		}
	}
	return nil
}

// look finds out what path is now.
func (f *Finder) look(path string) {
	info, err := os.Lstat(path)
	if err != nil && !gone(err) {
		f.complain(path, "file cannot be looked at, it is not replicated", err)
		return
	}
	isDir := err == nil && info.IsDir()
	isFile := err == nil && !isDir
	if f.known[path] && !isFile {
		f.lost(path)
	}
	switch {
	case isDir, path == f.o.Root:
		f.lookAtDirectory(path)
	case f.dirs[path] != nil:
		f.drop(path)
	}
	if isFile {
		f.lookAtFile(path, info)
	}
}

func (f *Finder) lookAtFile(path string, info fs.FileInfo) {
	name := filepath.Base(path)
	_, known := f.known[path]
	if matched, err := filepath.Match(f.o.Pattern, name); known || err != nil || !matched || ofSQLite(name) || ofOurs(name) {
		return
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		f.complain(path, "link is not followed", errors.New("list the database itself with path"))
		return
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return
	}
	if f.sink.InUse(path, info) {
		f.inUse = true
		return
	}
	is, err := isDatabase(path)
	if err != nil && !gone(err) {
		f.complain(path, "file cannot be read, it is not replicated", err)
	}
	if is {
		f.known[path] = true
		f.list(path)
		f.sink.Add(path)
	}
}

// isDatabase opens a file to see how it begins.
func isDatabase(path string) (bool, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, err
	}
	defer file.Close()
	var head [len(magic)]byte
	_, err = io.ReadFull(file, head[:])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false, nil
	}
	return err == nil && string(head[:]) == magic, err
}

// gone tells that a path does not exist any more.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }
