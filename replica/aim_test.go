package replica_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

// doubled is a replica that holds everything at level 0 and above it.
func doubled(t *testing.T) (*history, []ltx.FileInfo) {
	h := newHistory(t, 512)
	h.timed = true
	h.write(10, 40)
	h.put(file(9, 1, 10), h.snapshot())
	h.write(20, 40)
	higher := []ltx.FileInfo{file(9, 1, 10), file(3, 11, 20), file(2, 21, 25), file(1, 26, 30)}
	for _, f := range higher[1:] {
		h.merge(f.Level, f.Min, f.Max)
	}
	return h, higher
}

func TestDamageAtAnyLevelIsMadeUpForByOthers(t *testing.T) {
	h, higher := doubled(t)
	for _, f := range higher {
		whole := h.read(f)
		for _, size := range []int{0, 7, 8, 40, ltx.HeaderSize, len(whole) / 2, len(whole) - 1} {
			h.put(f, whole[:size])
			h.check(0)
			h.checkTime(second(30), 30)
		}
		h.put(f, whole)
	}
}

func TestAFileThatWasMergedWronglyIsMadeUpForByOthers(t *testing.T) {
	h, higher := doubled(t)
	for i := range higher[1:] {
		for _, f := range higher[1 : i+2] {
			h.replace(f)
		}
		h.check(0)
	}
	h.remove(file(0, 15, 15))
	if _, _, err := h.restore(0); !errors.Is(err, ltx.ErrChecksum) {
		t.Errorf("without another way: got %v, want ErrChecksum", err)
	}
}

func TestTheTargetStaysTheSameWhenFilesVanish(t *testing.T) {
	h, higher := doubled(t)
	for _, o := range []replica.RestoreOptions{{TXID: 25}, {Time: second(25)}, {Time: second(25).Add(time.Second / 2)}} {
		for _, f := range append(higher[:3:3], file(0, 25, 25)) {
			h.bucket.Inject(storagetest.Fault{Op: storagetest.Get, Keys: h.Key(f), Err: storage.ErrNotFound, Times: 1})
		}
		o.Path = filepath.Join(t.TempDir(), "app.db")
		result, err := replica.Restore(t.Context(), h.Replica, o)
		if err != nil || result.Pos.TXID != 25 || !result.Time.Equal(second(25)) {
			t.Errorf("%+v: got %+v, %v", o, result, err)
		}
		h.bucket.Heal()
	}
	h.bucket.Inject(storagetest.Fault{Op: storagetest.Get, Err: fmt.Errorf("gone for ever: %w", storage.ErrNotFound)})
	if _, err := h.At(t.Context(), second(12)); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("files that are listed and never found: got %v", err)
	}
}
