package scratch_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/scratch"
)

func newSpace(t *testing.T, root string, limit int64) *scratch.Space {
	t.Helper()
	s, err := scratch.New(root, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func create(t *testing.T, s *scratch.Space, content string) *scratch.File {
	t.Helper()
	f, err := s.Create()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, content); err != nil {
		t.Fatal(err)
	}
	return f
}

// names returns all files below dir.
func names(t *testing.T, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && path != dir {
			found = append(found, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return found
}

func TestNothingIsMadeBeforeItIsNeededAndNothingIsLeft(t *testing.T) {
	root := filepath.Join(t.TempDir(), "deep", "root")
	s := newSpace(t, root, 0)
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the root is there: %v", err)
	}
	create(t, s, "left open")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left := names(t, root); len(left) != 0 || s.Used() != 0 {
		t.Errorf("%v and %d bytes are left", left, s.Used())
	}
	if _, err := s.Create(); !errors.Is(err, scratch.ErrClosed) {
		t.Errorf("create after close: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func TestAFileIsWrittenOnceAndThenRead(t *testing.T) {
	s := newSpace(t, t.TempDir(), 0)
	f := create(t, s, "hello ")
	if _, err := io.WriteString(f, "world"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, err := io.ReadAll(f.Reader()); string(got) != "hello world" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if got, err := io.ReadAll(f.Section(6, 5)); string(got) != "world" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := f.Write([]byte("x")); !errors.Is(err, scratch.ErrSealed) {
		t.Errorf("write after read: %v", err)
	}
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Error(err)
	}
	if _, err := f.Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
}

func TestOneBudgetIsSharedAndComesBack(t *testing.T) {
	root := t.TempDir()
	s := newSpace(t, root, 10)
	a, b := create(t, s, "123456"), create(t, s, "1234")
	var full *scratch.FullError
	_, err := b.Write([]byte("5"))
	if !errors.Is(err, scratch.ErrScratchFull) || !errors.As(err, &full) {
		t.Fatalf("got %v", err)
	}
	if want := (scratch.FullError{Dir: root, Cap: 10, Used: 10, Want: 1}); *full != want {
		t.Errorf("got %+v, want %+v", *full, want)
	}
	if err := a.Close(); err != nil || s.Used() != 4 {
		t.Errorf("close: %v, %d bytes in use", err, s.Used())
	}
	if _, err := b.Write([]byte("567890")); err != nil {
		t.Error(err)
	}
	if got, err := io.ReadAll(b.Reader()); string(got) != "1234567890" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestOnlyTheOwnerMayLookInside(t *testing.T) {
	root := t.TempDir()
	create(t, newSpace(t, root, 0), "secret")
	found := names(t, root)
	if len(found) != 3 {
		t.Fatalf("got %v, want directory, lock and file", found)
	}
	for _, name := range found {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		want := fs.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
		}
	}
}

func TestManyAtOnceStayWithinTheBudget(t *testing.T) {
	const limit, size = 64 << 10, 8 << 10
	s := newSpace(t, t.TempDir(), limit)
	var g errgroup.Group
	for i := range 32 {
		g.Go(func() error {
			f, err := s.Create()
			if err != nil {
				return err
			}
			defer f.Close()
			content := bytes.Repeat([]byte{byte(i)}, size)
			if _, err := f.Write(content); errors.Is(err, scratch.ErrScratchFull) {
				return nil
			} else if err != nil {
				return err
			}
			if used := s.Used(); used > limit {
				t.Errorf("%d bytes in use", used)
			}
			got, err := io.ReadAll(f.Reader())
			if !bytes.Equal(got, content) {
				t.Errorf("file %d has other content", i)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	if s.Used() != 0 {
		t.Errorf("%d bytes in use at the end", s.Used())
	}
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	if _, err := scratch.New("", 1); err == nil {
		t.Error("no directory was accepted")
	}
	if _, err := scratch.New(t.TempDir(), -1); err == nil {
		t.Error("a negative limit was accepted")
	}
}
