package replica_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/filelock"
	"github.com/tidemark-io/tidemark/replica"
)

func TestALockWithoutAProcessIsNotThatOfProcessMinusOne(t *testing.T) {
	h := newHistory(t, 512)
	h.write(2, 10)
	path := filepath.Join(t.TempDir(), "app.db")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := filelock.Set(f, filelock.Write, filelock.Pending, 1); err != nil {
		t.Fatal(err)
	}
	err = h.restoreTo(path, replica.ReplaceExisting)
	if !errors.Is(err, replica.ErrInUse) || !strings.Contains(err.Error(), "another process holds a lock on") {
		t.Errorf("got %v", err)
	}
}
