package apply_test

import (
	"errors"
	"os"
	"testing"

	"github.com/tidemark-io/tidemark/replica/apply"
)

// Who had the database open in WAL mode when it became a copy leaves a WAL.
func TestAWALIsRemovedOnlyIfItHasNoFrames(t *testing.T) {
	s := small(t)
	c := newCopied(t, s.image, s.pos)
	if err := c.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.WriteFile(c.path+suffix, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c.apply(s.exec("DELETE FROM t WHERE id < 9"))
	for _, suffix := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(c.path + suffix); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", suffix, err)
		}
	}
	c.checkSums(s.image, s.pos)
	if err := os.WriteFile(c.path+"-wal", make([]byte, 32+24+1024), 0o644); err != nil {
		t.Fatal(err)
	}
	before := readAside(t, c.path)
	if err := c.Apply(t.Context(), s.exec("DELETE FROM t WHERE id < 12")); !errors.Is(err, apply.ErrForeign) {
		t.Errorf("with frames in a WAL: got %v", err)
	}
	if string(readAside(t, c.path)) != string(before) {
		t.Error("the copy was changed")
	}
	if err := os.Remove(c.path + "-wal"); err != nil {
		t.Fatal(err)
	}
}
