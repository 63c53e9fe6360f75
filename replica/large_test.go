package replica_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

// newLargeHistory has files that are read by their index: a base, a large and
// some small increments.
func newLargeHistory(t testing.TB, pages uint32) *history {
	h := newHistory(t, 4096)
	h.write(1, pages)
	b := h.commit(pages-20, 3*int(pages))
	h.put(file(0, 2, 2), b)
	h.write(5, pages-10)
	return h
}

func TestOldVersionsOfPagesAreNotFetched(t *testing.T) {
	h := newHistory(t, 4096)
	for _, pages := range []uint32{3000, 100, 3000} {
		h.write(1, pages)
	}
	base, newest := int64(len(h.read(file(0, 1, 1)))), int64(len(h.read(file(0, 3, 3))))
	if result := h.check(0); result.Bytes > newest+base/3 {
		t.Errorf("read %d bytes; the newest file has %d, the base below it %d", result.Bytes, newest, base)
	}
	h.check(1)
	h.check(2)
}

func TestRestoreSurvivesABadConnection(t *testing.T) {
	h := newLargeHistory(t, 600)
	for _, fault := range []storagetest.Fault{
		{Op: storagetest.Get, Times: 3},
		{Op: storagetest.Get, Effect: storagetest.CutBody, Bytes: 300 << 10, Times: 8},
		{Op: storagetest.Get, Effect: storagetest.CutBody, Bytes: 30 << 10, Keys: "ltx/0/*1.ltx", Times: 12},
	} {
		h.bucket.Inject(fault)
		h.check(0)
		h.bucket.Heal()
	}
}

func TestRestoreGivesUpOnABrokenConnectionAndLeavesNothing(t *testing.T) {
	h := newLargeHistory(t, 600)
	for _, fault := range []storagetest.Fault{
		{Op: storagetest.Get, Err: storage.ErrForbidden},
		{Op: storagetest.Get, Err: storage.ErrForbidden, Keys: "ltx/0/*1.ltx"},
		{Op: storagetest.Get, Effect: storagetest.CutBody, Bytes: 1},
		{Op: storagetest.List, Effect: storagetest.BreakList, Bytes: 3},
	} {
		h.bucket.Inject(fault)
		_, _, err := h.restore(0)
		if err == nil || errors.Is(err, replica.ErrNoBackup) || errors.Is(err, ltx.ErrCorrupt) {
			t.Errorf("%+v: got %v", fault, err)
		}
		h.bucket.Heal()
	}
	h.check(0)
}

func TestRestorePlansAgainWhenAFileWasMergedAway(t *testing.T) {
	h := newLargeHistory(t, 600)
	h.bucket.Inject(storagetest.Fault{Op: storagetest.Get, Err: storage.ErrNotFound, Keys: "ltx/0/*2.ltx", Times: 3})
	h.check(0)
	h.bucket.Inject(storagetest.Fault{Op: storagetest.Get, Err: storage.ErrNotFound, Keys: "ltx/0/*2.ltx"})
	if _, _, err := h.restore(0); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("a file that is listed and never found: got %v", err)
	}
}

func TestDamagedFilesAreNamedOrMadeUpFor(t *testing.T) {
	h := newLargeHistory(t, 600)
	for _, txid := range []ltx.TXID{1, 2, 4} {
		f := file(0, txid, txid)
		whole := h.read(f)
		for at, damaged := range damages(whole) {
			h.put(f, damaged)
			_, got, err := h.restore(0)
			harmless := err == nil && bytes.Equal(got, h.image) && len(damaged) == len(whole)
			if !harmless && (!isDamage(err) || !strings.Contains(err.Error(), h.Key(f))) {
				t.Errorf("transaction %d of %d bytes, damage at %d: got %v", txid, len(whole), at, err)
			}
		}
		h.put(file(1, txid, txid), whole)
		h.check(0)
		h.put(f, whole)
		h.remove(file(1, txid, txid))
	}
}

func isDamage(err error) bool {
	return errors.Is(err, ltx.ErrCorrupt) || errors.Is(err, ltx.ErrChecksum)
}

// damages returns broken versions of a file: cut, and with flipped bits in
// each of its parts, by the place of the damage. Some do no harm to a file of
// which only pages are used.
func damages(whole []byte) map[int][]byte {
	all := map[int][]byte{}
	for _, size := range []int{0, 7, 8, 40, ltx.HeaderSize, 130, len(whole) / 2, len(whole) - 1} {
		all[size] = whole[:size]
	}
	for _, at := range []int{2, 15, 20, 104, 107, 130, len(whole)/2 + 1, len(whole) - 60, len(whole) - 22, len(whole) - 10, len(whole) - 1} {
		b := bytes.Clone(whole)
		b[at] ^= 0x10
		all[at] = b
	}
	return all
}

func TestFilesOfTwoLinesAreNeverMixed(t *testing.T) {
	h, other := newLargeHistory(t, 600), newHistory(t, 4096)
	other.random.Uint64()
	other.write(3, 600)
	h.put(file(0, 2, 2), other.read(file(0, 2, 2)))
	_, _, err := h.restore(0)
	if !errors.Is(err, ltx.ErrChecksum) || !strings.Contains(err.Error(), h.Key(file(0, 2, 2))) {
		t.Errorf("got %v, want ErrChecksum naming the files", err)
	}
}

func BenchmarkRestore(b *testing.B) {
	h := newHistory(b, 4096)
	h.write(1, 60000)
	dir := b.TempDir()
	b.SetBytes(int64(len(h.image)))
	for i := range b.N {
		path := filepath.Join(dir, fmt.Sprint(i))
		if _, err := replica.Restore(b.Context(), h.Replica, replica.RestoreOptions{Path: path}); err != nil {
			b.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			b.Fatal(err)
		}
	}
}
