package testdb

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// MemoryDir returns a new directory in memory, where Rot works.
func MemoryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "tidemark-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Rot returns a function that flips a bit of one byte of a file in a MemoryDir,
// as a failing disk does: nobody hears of it, and no time of the file changes. It
// must be called while no connection of this process has the file open.
func Rot(t testing.TB, path string, at int64) (flip func()) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := int64(os.Getpagesize())
	b, err := unix.Mmap(int(f.Fd()), at/page*page, int(page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(b); err != nil {
			t.Error(err)
		}
	})
	// The first write through a mapping sets the file's times, others do not
	// until it was written back, which memory never is.
	b[at%page] ^= 0
	return func() { b[at%page] ^= 1 }
}
