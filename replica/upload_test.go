package replica_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

// capture commits and writes the file of the commit to dir.
func (h *history) capture(dir string) replica.Pending {
	h.t.Helper()
	b := h.commit(5, 2)
	p := replica.Pending{Info: file(0, h.pos.TXID, h.pos.TXID), Pos: h.pos, Path: filepath.Join(dir, h.pos.TXID.String())}
	if err := os.WriteFile(p.Path, b, 0o600); err != nil {
		h.t.Fatal(err)
	}
	return p
}

func TestUploadRecognizesItsOwnLostAnswer(t *testing.T) {
	h := newHistory(t, 4096)
	p := h.capture(t.TempDir())
	h.bucket.Inject(storagetest.Fault{Op: storagetest.Put, Effect: storagetest.LoseReply, Times: 1})
	if _, err := h.Upload(t.Context(), p); !errors.Is(err, storagetest.ErrInjected) {
		t.Fatalf("first attempt: got %v, want the injected error", err)
	}
	if _, err := h.Upload(t.Context(), p); err != nil {
		t.Errorf("second attempt: %v", err)
	}
	checkTip(t, h, p.Info)
}

// meddler writes to the file that is being uploaded.
type meddler struct {
	storage.Bucket
	path string
}

func (m meddler) Put(ctx context.Context, key string, body io.ReadSeeker, cond storage.Condition) (storage.Object, error) {
	if err := os.Truncate(m.path, 10); err != nil {
		return storage.Object{}, err
	}
	return m.Bucket.Put(ctx, key, body, cond)
}

func TestAFileThatChangesIsNotUploaded(t *testing.T) {
	h := newHistory(t, 4096)
	p := h.capture(t.TempDir())
	r := replica.New(meddler{h.bucket, p.Path}, replica.LayoutDir, slog.New(slog.DiscardHandler))
	if _, err := r.Upload(t.Context(), p); err == nil || errors.Is(err, replica.ErrFenced) || !strings.Contains(err.Error(), p.Path) {
		t.Errorf("got %v, want an error that names the file", err)
	}
	if files, err := h.Inventory(t.Context()); err != nil || len(files) != 0 {
		t.Errorf("on the bucket: %v, %v", files, err)
	}
}

func TestUploadIsFencedByOtherContentOnly(t *testing.T) {
	h := newHistory(t, 4096)
	p := h.capture(t.TempDir())
	local, err := os.ReadFile(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte(nil), local...)
	flipped[len(flipped)-1] ^= 1
	for name, content := range map[string][]byte{
		"longer": append(local[:len(local):len(local)], 0), "shorter": local[:len(local)-1], "empty": {}, "other": flipped,
	} {
		h.put(p.Info, content)
		_, err := h.Upload(t.Context(), p)
		if !errors.Is(err, replica.ErrFenced) || !strings.Contains(err.Error(), h.Key(p.Info)) {
			t.Errorf("%s: got %v, want ErrFenced naming the key", name, err)
		}
	}
	h.put(p.Info, local)
	if _, err := h.Upload(t.Context(), p); err != nil {
		t.Errorf("equal content: %v", err)
	}
}

func TestUploadIsNotFencedByAConnectionThatBreaks(t *testing.T) {
	h := newHistory(t, 4096)
	p := h.capture(t.TempDir())
	if _, err := h.Upload(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for _, fault := range []storagetest.Fault{
		{Op: storagetest.Get, Effect: storagetest.CutBody, Bytes: 50, Times: 1},
		{Op: storagetest.Get, Err: storage.ErrNotFound, Times: 1},
	} {
		h.bucket.Inject(fault)
		if _, err := h.Upload(t.Context(), p); err == nil || errors.Is(err, replica.ErrFenced) {
			t.Errorf("%+v: got %v, want an error to retry", fault, err)
		}
	}
	if _, err := h.Upload(t.Context(), p); err != nil {
		t.Error(err)
	}
}

func TestUploadEndsWithItsContext(t *testing.T) {
	h := newHistory(t, 4096)
	p := h.capture(t.TempDir())
	h.bucket.Inject(storagetest.Fault{Effect: storagetest.Hang})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Upload(ctx, p); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if _, err := h.Replica.Open(ctx, ltx.FileInfo{Min: 1, Max: 1}, storage.Range{}); !errors.Is(err, context.Canceled) {
		t.Errorf("open: got %v, want context.Canceled", err)
	}
}

// A base behind other files takes the level-0 name of its TXID, so that it
// collides with what another writer puts there.
func TestABaseCollidesWithAnotherWritersFile(t *testing.T) {
	h := newHistory(t, 4096)
	h.write(2, 5)
	h.pos.TXID++
	base := replica.Pending{Info: file(ltx.LevelSnapshot, 1, h.pos.TXID), Pos: h.pos, Path: filepath.Join(t.TempDir(), "base")}
	if err := os.WriteFile(base.Path, h.snapshot(), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time is an attempt whose answer was lost
		if _, err := h.Upload(t.Context(), base); err != nil {
			t.Fatal(err)
		}
	}
	checkTip(t, h, base.Info)
	if tip, err := h.Tip(t.Context()); err != nil || tip.Pos != h.pos {
		t.Errorf("tip is %+v (%v), want the base at %s", tip, err, h.pos)
	}
	late := replica.Pending{Info: file(0, h.pos.TXID, h.pos.TXID), Path: filepath.Join(t.TempDir(), "late")}
	h.pos.TXID--
	other := h.commit(5, 2)
	if err := os.WriteFile(late.Path, other, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Upload(t.Context(), late); !errors.Is(err, replica.ErrFenced) {
		t.Errorf("the other writer got %v, want ErrFenced", err)
	}
	h.put(late.Info, other)
	if err := os.WriteFile(base.Path, h.snapshot(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Upload(t.Context(), base); !errors.Is(err, replica.ErrFenced) {
		t.Errorf("the base behind the other writer's file got %v, want ErrFenced", err)
	}
}
