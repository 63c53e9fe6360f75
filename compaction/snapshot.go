package compaction

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tidemark-io/tidemark/internal/scratch"
	"github.com/tidemark-io/tidemark/ltx"
)

// ErrDiverged is wrapped when a snapshot of the local database is not the state
// that the replica has at its TXID. It is not uploaded.
var ErrDiverged = errors.New("the local database is not what the replica holds")

// Snapshotter writes snapshots of the local database.
type Snapshotter interface {
	// Snapshot writes an LTX file with every page, from TXID 1 to the position
	// that it returns, with database checksums, while writers go on. The
	// position is one that was captured, as new as can be had.
	Snapshot(ctx context.Context, w io.Writer) (ltx.Pos, error)
}

// capture writes a snapshot to a scratch file and verifies it.
func (m *Merger) capture(ctx context.Context, s Snapshotter) (*scratch.File, ltx.Pos, error) {
	file, err := m.scratch.Create()
	if err != nil {
		return nil, ltx.Pos{}, err
	}
	pos, err := s.Snapshot(ctx, file)
	if err == nil {
		err = checkSnapshot(file, pos)
	}
	if err != nil {
		return nil, ltx.Pos{}, errors.Join(unfitting(file, err), file.Close())
	}
	return file, pos, nil
}

func checkSnapshot(file *scratch.File, pos ltx.Pos) error {
	h, t, err := ltx.VerifyFile(file.Reader())
	if err != nil {
		return fmt.Errorf("verify snapshot: %w", err)
	}
	if h.MinTXID != 1 || h.MaxTXID != pos.TXID || t.PostApplyChecksum != pos.PostApplyChecksum {
		return fmt.Errorf("verify snapshot: %w: it holds %s-%s and leaves %s, not %s",
			ltx.ErrCorrupt, h.MinTXID, h.MaxTXID, t.PostApplyChecksum, pos)
	}
	return nil
}

// checkDiverged compares a position with the file on the bucket that ends
// there, if there is one that tells.
func (m *Merger) checkDiverged(ctx context.Context, files []ltx.FileInfo, pos ltx.Pos) error {
	i := slices.IndexFunc(files, func(f ltx.FileInfo) bool {
		return f.Max == pos.TXID && usable(f) && !isClaim(f)
	})
	if i < 0 {
		return nil
	}
	t, err := m.endOf(ctx, files[i])
	if err != nil {
		return err
	}
	if t.PostApplyChecksum != 0 && t.PostApplyChecksum != pos.PostApplyChecksum {
		return fmt.Errorf("%w: it has checksum %s at %s, %s says %s",
			ErrDiverged, pos.PostApplyChecksum, pos.TXID, m.replica.Key(files[i]), t.PostApplyChecksum)
	}
	return nil
}
