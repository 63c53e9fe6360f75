package replica_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

// restore restores to a new directory.
func (h *history) restore(txid ltx.TXID) (replica.RestoreResult, []byte, error) {
	h.t.Helper()
	path := filepath.Join(h.t.TempDir(), "app.db")
	result, err := replica.Restore(h.t.Context(), h.Replica, replica.RestoreOptions{Path: path, TXID: txid})
	if err != nil {
		checkOnly(h.t, filepath.Dir(path))
		return result, nil, err
	}
	checkOnly(h.t, filepath.Dir(path), "app.db")
	b, err := os.ReadFile(path)
	return result, b, err
}

// check restores a state and compares it with what it was.
func (h *history) check(txid ltx.TXID) replica.RestoreResult {
	h.t.Helper()
	result, got, err := h.restore(txid)
	if err != nil {
		h.t.Fatal(err)
	}
	if txid == 0 {
		txid = h.pos.TXID
	}
	if want := h.images[txid]; !bytes.Equal(got, want) {
		h.t.Fatalf("transaction %d: restored %d bytes differ from the %d there were", txid, len(got), len(want))
	}
	if result.Pos.TXID != txid || txid == h.pos.TXID && result.Pos != h.pos {
		h.t.Errorf("got position %v, want transaction %d of %v", result.Pos, txid, h.pos)
	}
	return result
}

// checkOnly fails unless dir holds the named files and nothing else.
func checkOnly(t testing.TB, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

func TestRestoreOfAnyStateIsExact(t *testing.T) {
	for _, pageSize := range []uint32{512, 1024, 4096, 65536} {
		t.Run(fmt.Sprint(pageSize), func(t *testing.T) {
			h := newHistory(t, pageSize)
			for _, pages := range []uint32{7, 9, 20, 4, 4, 11, 70, 1, 0, 3, 5} {
				h.write(1, pages)
				if h.pos.TXID == 5 || h.pos.TXID == 7 {
					h.put(file(9, 1, h.pos.TXID), h.snapshot())
				}
			}
			for txid := range h.pos.TXID + 1 {
				h.check(txid)
			}
		})
	}
}

// merge stores the files from minTXID to maxTXID merged.
func (h *history) merge(level int, minTXID, maxTXID ltx.TXID) {
	h.t.Helper()
	var merged bytes.Buffer
	var sources []*bytes.Reader
	for txid := minTXID; txid <= maxTXID; txid++ {
		sources = append(sources, bytes.NewReader(h.read(file(0, txid, txid))))
	}
	if err := mergeAll(h.t.Context(), &merged, sources); err != nil {
		h.t.Fatal(err)
	}
	h.put(file(level, minTXID, maxTXID), merged.Bytes())
}

func TestRestoreWorksThroughMergedAndOverlappingFiles(t *testing.T) {
	h := newHistory(t, 512)
	h.write(4, 40)
	h.write(8, 60)
	h.write(8, 30)
	h.put(file(9, 1, 20), h.snapshot())
	h.write(20, 50)
	h.merge(1, 22, 25)
	h.merge(1, 24, 29)
	h.merge(2, 18, 33)
	h.merge(1, 21, 21)
	for txid := ltx.TXID(21); txid <= 33; txid++ {
		h.remove(file(0, txid, txid))
	}
	for _, txid := range []ltx.TXID{3, 19, 20, 21, 25, 33, 40, 0} {
		h.check(txid)
	}
	var e *replica.UnreachableError
	if _, _, err := h.restore(27); !errors.As(err, &e) || e.Earlier != 25 || e.Later != 29 {
		t.Errorf("inside a merged file: got %v", err)
	}
}

func TestRestoreRefusesAHole(t *testing.T) {
	h := newHistory(t, 512)
	h.write(9, 40)
	h.remove(file(0, 6, 6))
	for _, target := range []ltx.TXID{0, 6, 7} {
		_, _, err := h.restore(target)
		var e *replica.UnreachableError
		if !errors.As(err, &e) || e.Missing != 6 || e.Earlier != 5 {
			t.Errorf("target %d: got %v, want that transaction 6 is missing", target, err)
		}
	}
	h.check(5)
	h.put(file(9, 1, 9), h.snapshot())
	h.check(0)
}

func TestRestoreOfNothingIsNoBackup(t *testing.T) {
	h := newHistory(t, 512)
	if _, _, err := h.restore(0); !errors.Is(err, replica.ErrNoBackup) {
		t.Errorf("got %v, want ErrNoBackup", err)
	}
	h.put(file(9, 1, 1), nil)
	if _, _, err := h.restore(0); errors.Is(err, replica.ErrNoBackup) || !errors.Is(err, ltx.ErrCorrupt) {
		t.Errorf("an empty object: got %v, want ErrCorrupt", err)
	}
}

func TestRestoreTellsItsProgress(t *testing.T) {
	h := newHistory(t, 4096)
	h.write(3, 600)
	var last, total, calls int64
	result, err := replica.Restore(t.Context(), h.Replica, replica.RestoreOptions{
		Path: filepath.Join(t.TempDir(), "db"),
		Progress: func(d, n int64) {
			if d < last {
				t.Errorf("progress went from %d to %d", last, d)
			}
			last, total, calls = d, n, calls+1
		},
	})
	if err != nil || last != 600*4096 || total != last || calls < 2 {
		t.Errorf("got %v; %d of %d after %d calls", err, last, total, calls)
	}
	if result.Pages != 600 || result.PageSize != 4096 || result.Files != 3 || result.Bytes == 0 || result.Duration == 0 {
		t.Errorf("got result %+v", result)
	}
}

func TestRestoreIsCheckedBeforeItGetsItsName(t *testing.T) {
	h := newHistory(t, 512)
	h.write(2, 10)
	broken := errors.New("integrity check: broken")
	path := filepath.Join(t.TempDir(), "app.db")
	o := replica.RestoreOptions{Path: path, Check: func(_ context.Context, name string) error {
		if b, err := os.ReadFile(name); err != nil || !bytes.Equal(b, h.image) {
			t.Errorf("the check saw %d bytes, %v", len(b), err)
		}
		if _, err := os.Lstat(path); err == nil || !strings.HasPrefix(name, filepath.Dir(path)) {
			t.Errorf("the check of %s came after the rename", name)
		}
		return errors.Join(broken, os.WriteFile(name+"-wal", []byte("litter"), 0o600))
	}}
	if _, err := replica.Restore(t.Context(), h.Replica, o); !errors.Is(err, broken) {
		t.Errorf("got %v, want what the check said", err)
	}
	checkOnly(t, filepath.Dir(path))
}
