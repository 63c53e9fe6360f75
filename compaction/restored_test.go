package compaction_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
)

// list returns the files there are, by level.
func (h *history) list(levels ...int) (files []ltx.FileInfo) {
	h.t.Helper()
	for _, level := range levels {
		found, err := h.Files(h.t.Context(), level)
		if err != nil {
			h.t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// read returns a file as it is stored.
func (h *history) read(f ltx.FileInfo) []byte {
	h.t.Helper()
	body, err := h.Open(h.t.Context(), f, storage.Range{})
	if err != nil {
		h.t.Fatal(err)
	}
	defer body.Close()
	b, err := io.ReadAll(body)
	if err != nil {
		h.t.Fatal(err)
	}
	return b
}

// restored restores the state of a TXID (0: the newest) and compares it.
func (h *history) restored(txid ltx.TXID) {
	h.t.Helper()
	path := filepath.Join(h.t.TempDir(), "restored.db")
	result, err := replica.Restore(h.t.Context(), h.Replica, replica.RestoreOptions{Path: path, TXID: txid})
	if err != nil {
		h.t.Fatalf("restore %d: %v", txid, err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		h.t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if txid == 0 {
		txid = h.pos.TXID
	}
	if result.Pos.TXID != txid || !bytes.Equal(got, h.images[txid]) {
		h.t.Errorf("restored %d of %d is not what was committed", result.Pos.TXID, txid)
	}
}
