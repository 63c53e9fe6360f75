package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

// history is that of a replica, for the sidecar of the database at path: the
// note of a restore says at once which state it was restored to, however long
// ago that was.
type history struct {
	*replica.Replica
	path string
}

var _ capture.History = history{}

// Find returns the TXID of the note, if the replica says the same of it, else
// the newest that can be found.
func (h history) Find(ctx context.Context, sum ltx.Checksum) (ltx.TXID, error) {
	pos, err := readNote(h.path)
	if err != nil || pos.PostApplyChecksum != sum {
		return h.Replica.Find(ctx, sum) // a note that cannot be read tells nothing
	}
	at, err := h.PosAt(ctx, pos.TXID)
	switch {
	case err == nil && at.Pos == pos:
		return pos.TXID, nil
	case err == nil, errors.Is(err, replica.ErrUnreachable), errors.Is(err, replica.ErrNoBackup), errors.Is(err, ltx.ErrCorrupt):
		return h.Replica.Find(ctx, sum)
	}
	return 0, err
}

// readNote reads what notePosition wrote for the database at path.
func readNote(path string) (ltx.Pos, error) {
	b, err := os.ReadFile(filepath.Join(capture.StateDir(path), restoredName))
	if err != nil {
		return ltx.Pos{}, err
	}
	first, second, _ := strings.Cut(strings.TrimSuffix(string(b), "\n"), " ")
	txid, err1 := strconv.ParseUint(first, 16, 64)
	sum, err2 := strconv.ParseUint(second, 16, 64)
	return ltx.Pos{TXID: ltx.TXID(txid), PostApplyChecksum: ltx.Checksum(sum)}, errors.Join(err1, err2)
}
