package filelock_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/internal/filelock"
)

// open opens the file twice: locks of both kinds belong to a descriptor.
func open(t *testing.T) (a, b *os.File) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	var files [2]*os.File
	for i := range files {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		files[i] = f
	}
	return files[0], files[1]
}

func check(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func TestLocksOfWholeFiles(t *testing.T) {
	a, b := open(t)
	check(t, "first shared", filelock.Shared(a), nil)
	check(t, "second shared", filelock.Shared(b), nil)
	check(t, "exclusive beside a shared one", filelock.Exclusive(b), filelock.ErrHeld)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	check(t, "exclusive alone", filelock.Exclusive(b), nil)
}

func TestAFileThatLostItsNameIsNotOurs(t *testing.T) {
	a, b := open(t)
	if named, err := filelock.ExclusiveNamed(a); err != nil || !named {
		t.Fatalf("got %t, %v", named, err)
	}
	if named, err := filelock.ExclusiveNamed(b); err != nil || named {
		t.Errorf("held by another: got %t, %v", named, err)
	}
	for _, how := range []func() error{
		func() error { return os.Remove(a.Name()) },
		func() error { return os.WriteFile(a.Name(), nil, 0o600) },
	} {
		if err := how(); err != nil {
			t.Fatal(err)
		}
		if named, err := filelock.ExclusiveNamed(a); err != nil || named {
			t.Errorf("removed or replaced: got %t, %v", named, err)
		}
	}
}

func TestLocksOfBytes(t *testing.T) {
	a, b := open(t)
	check(t, "write", filelock.Set(a, filelock.Write, filelock.Pending, 1), nil)
	check(t, "read of the same byte", filelock.Set(b, filelock.Read, filelock.Pending, 1), filelock.ErrHeld)
	check(t, "read of the next byte", filelock.Set(b, filelock.Read, filelock.Reserved, 1), nil)
	other, err := filelock.OfOthers(b, filelock.Write, filelock.Pending, filelock.DatabaseBytes)
	if err != nil || other != (filelock.Other{Held: true, First: filelock.Pending}) || other.String() != "another process" {
		t.Errorf("got %+v (%s), %v", other, other, err)
	}
	if other, err := filelock.OfOthers(a, filelock.Read, filelock.Reserved, 1); err != nil || other.Held {
		t.Errorf("a lock that many may hold: got %+v, %v", other, err)
	}
	check(t, "giving up", filelock.Set(a, filelock.None, filelock.Pending, 1), nil)
	check(t, "write after that", filelock.Set(b, filelock.Write, filelock.Pending, 1), nil)
}

func TestAClosedFileIsAnErrorAndNotHeld(t *testing.T) {
	a, _ := open(t)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	_, askErr := filelock.OfOtherProcesses(a, filelock.Write, 0, 1)
	for _, err := range []error{filelock.Exclusive(a), filelock.Set(a, filelock.Read, 0, 1), askErr} {
		if err == nil || errors.Is(err, filelock.ErrHeld) {
			t.Errorf("got %v", err)
		}
	}
}
