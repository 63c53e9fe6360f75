package replica_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

func TestTipIsTheNewestFileOfAllLevels(t *testing.T) {
	h := newHistory(t, 512)
	h.write(3, 5)
	checkTip(t, h, file(0, 3, 3))
	h.put(file(9, 1, 3), h.snapshot())
	older(t, h, true)
	checkTip(t, h, file(9, 1, 3))
	for txid := range ltx.TXID(3) {
		h.remove(file(0, txid+1, txid+1))
	}
	checkTip(t, h, file(9, 1, 3))
	older(t, h, false)
	h.write(1, 2)
	checkTip(t, h, file(0, 4, 4))
	older(t, h, true)
}

// older checks whether files are told of that end before the newest.
func older(t *testing.T, h *history, want bool) {
	t.Helper()
	tip, err := h.Tip(t.Context())
	if err != nil || tip.Older != want {
		t.Errorf("older files: %t, %v; want %t", tip.Older, err, want)
	}
}

func TestTipTakesOneListingAndOneRead(t *testing.T) {
	h := newHistory(t, 4096)
	expect := func(what string, lists, gets int) {
		t.Helper()
		lists, gets = lists+h.bucket.Calls(storagetest.List), gets+h.bucket.Calls(storagetest.Get)
		if _, err := h.Tip(t.Context()); err != nil && !errors.Is(err, replica.ErrNoBackup) {
			t.Fatal(err)
		}
		if l, g := h.bucket.Calls(storagetest.List), h.bucket.Calls(storagetest.Get); l != lists || g != gets {
			t.Errorf("%s: %d listings and %d reads more than expected", what, l-lists, g-gets)
		}
	}
	expect("empty", 1, 0)
	h.write(3, 5)
	expect("small file", 1, 1)
	h.put(file(9, 1, 3), h.snapshot())
	expect("two levels that end together", 1, 1)
	h.write(1, 40)
	files, err := h.Files(t.Context(), 0)
	if err != nil || files[3].Size <= 64<<10 {
		t.Fatalf("got %+v, %v; want a large file", files, err)
	}
	expect("large file", 1, 2)
}

func checkTip(t *testing.T, h *history, want ltx.FileInfo) {
	t.Helper()
	tip, err := h.Tip(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if tip.Pos != h.pos || tip.PageSize != h.pageSize || tip.Commit != h.pages() {
		t.Errorf("got tip %+v, want %v with %d pages", tip, h.pos, h.pages())
	}
	if got := tip.Info; got.Level != want.Level || got.Min != want.Min || got.Max != want.Max || got.Size == 0 {
		t.Errorf("tip is %+v, want %+v", got, want)
	}
}

func TestNoBackupNeedsACompleteListing(t *testing.T) {
	h := newHistory(t, 512)
	h.bucket.Inject(storagetest.Fault{Op: storagetest.List, Err: storage.ErrForbidden})
	if _, err := h.Tip(t.Context()); !errors.Is(err, storage.ErrForbidden) || errors.Is(err, replica.ErrNoBackup) {
		t.Errorf("forbidden listing: got %v", err)
	}
	h.bucket.Heal()
	if _, err := h.Tip(t.Context()); !errors.Is(err, replica.ErrNoBackup) {
		t.Errorf("empty bucket: got %v, want ErrNoBackup", err)
	}
	h.write(2, 5)
	h.bucket.Inject(storagetest.Fault{Op: storagetest.List, Effect: storagetest.BreakList, Bytes: 1})
	if tip, err := h.Tip(t.Context()); !errors.Is(err, storagetest.ErrInjected) {
		t.Errorf("listing that breaks: got %+v, %v", tip, err)
	}
	if files, err := h.Inventory(t.Context()); !errors.Is(err, storagetest.ErrInjected) || files != nil {
		t.Errorf("inventory of a listing that breaks: got %v, %v", files, err)
	}
}

func TestTipPassesOverAStubWhereAnotherLevelHasTheState(t *testing.T) {
	for _, size := range []int{0, 7, 8, ltx.HeaderSize, 130} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			h := newHistory(t, 512)
			h.write(1, 5)
			whole := h.commit(5, 2)
			h.put(file(0, 2, 2), whole[:size])
			_, err := h.Tip(t.Context())
			if !errors.Is(err, ltx.ErrCorrupt) || !strings.Contains(err.Error(), h.Key(file(0, 2, 2))) {
				t.Errorf("got %v, want ErrCorrupt naming the key", err)
			}
			h.put(file(9, 1, 2), h.snapshot())
			checkTip(t, h, file(9, 1, 2))
		})
	}
}

func TestTipRefusesAFileUnderTheNameOfAnother(t *testing.T) {
	h := newHistory(t, 512)
	h.put(file(0, 8, 8), h.commit(5, 2))
	if _, err := h.Tip(t.Context()); !errors.Is(err, ltx.ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
}

func TestFilesListsOneLevelAndIgnoresForeignNames(t *testing.T) {
	h := newHistory(t, 512)
	h.write(3, 5)
	h.put(file(1, 2, 3), []byte("x"))
	for _, foreign := range []string{"ltx/0/readme.txt", "lease.json"} {
		if _, err := h.bucket.Put(t.Context(), foreign, strings.NewReader("x"), storage.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	files, err := h.Files(t.Context(), 0)
	if err != nil || len(files) != 3 || files[0].Min != 1 || files[2].Max != 3 || files[1].ModTime.IsZero() {
		t.Errorf("level 0: got %+v, %v", files, err)
	}
	all, err := h.Inventory(t.Context())
	if err != nil || len(all) != 4 || all[3].Level != 1 || all[3].Size != 1 {
		t.Errorf("all levels: got %+v, %v", all, err)
	}
}
