package storage

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// hashLimit is the size up to which an ETag covers the content. What is
// swapped by ETag is small.
const hashLimit = 64 << 10

// describe returns what an open file holds; a directory is no object.
func describe(key string, f *os.File) (Object, error) {
	info, err := f.Stat()
	if err != nil {
		return Object{}, err
	}
	if info.IsDir() {
		return Object{}, ErrNotFound
	}
	if !info.Mode().IsRegular() {
		return Object{}, fmt.Errorf("%s is not a regular file", f.Name())
	}
	tag, err := etag(f, info)
	if err != nil {
		return Object{}, fmt.Errorf("read for its ETag: %w", err)
	}
	return Object{Key: key, Size: info.Size(), ETag: tag, ModTime: info.ModTime()}, nil
}

// etag names one write: every write makes a new file, whose inode differs from
// the one it replaces. Inode numbers come back, and some file systems keep
// whole seconds only, so small files add their content.
func etag(f *os.File, info fs.FileInfo) (string, error) {
	var inode uint64
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = stat.Ino
	}
	tag := fmt.Sprintf("%x-%x-%x", inode, info.ModTime().UnixNano(), info.Size())
	if info.Size() > hashLimit {
		return tag, nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(f, 0, info.Size())); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s-%x", tag, hash.Sum(nil)[:8]), nil
}

// fileBody reads a part of a file until the request is canceled.
type fileBody struct {
	ctx func() error
	r   *io.SectionReader
	f   *os.File
}

func (b *fileBody) Read(p []byte) (int, error) {
	if err := b.ctx(); err != nil {
		return 0, err
	}
	return b.r.Read(p)
}

func (b *fileBody) Close() error { return b.f.Close() }

// syncDir makes the entries of a directory below root durable.
func syncDir(root *os.Root, dir string) error {
	if dir == "" {
		dir = "."
	}
	f, err := root.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync directory %s: %w", f.Name(), err)
	}
	return nil
}
