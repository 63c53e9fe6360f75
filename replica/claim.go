package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/storage"
)

// ErrTaken is wrapped by TakenError.
var ErrTaken = errors.New("the transaction is taken")

// TakenError says that a claim found another file at its place, or that its
// place turned out to be in the past: apply what is there and claim the next.
type TakenError struct {
	File ltx.FileInfo // what is there
}

// Error names the file.
func (e *TakenError) Error() string {
	return fmt.Sprintf("%v by the file %s-%s of level %d", ErrTaken, e.File.Min, e.File.Max, e.File.Level)
}

// Unwrap makes errors.Is(err, ErrTaken) true.
func (e *TakenError) Unwrap() error { return ErrTaken }

// Claim shuts out who wrote the replica before: it stores, only if nothing is
// there, a file without pages at the TXID after tip, whose checksum must be
// known, with nodeID in its header. Then it looks again whether anything covers
// or follows it, which means that tip was not the newest state; the claim is
// taken back then. It returns the position to go on from. A claim that is there
// with the same nodeID is an earlier attempt, and is ours.
func (r *Replica) Claim(ctx context.Context, tip Tip, nodeID uint64) (ltx.Pos, error) {
	pos := ltx.Pos{TXID: tip.Pos.TXID + 1, PostApplyChecksum: tip.Pos.PostApplyChecksum}
	err := r.putClaim(ctx, tip, nodeID)
	if err == nil {
		err = r.checkNewest(ctx, pos.TXID)
	}
	if err != nil {
		return ltx.Pos{}, fmt.Errorf("claim transaction %s in %s: %w", pos.TXID, r, err)
	}
	return pos, nil
}

func (r *Replica) putClaim(ctx context.Context, tip Tip, nodeID uint64) error {
	if tip.Pos.TXID == 0 || tip.Pos.PostApplyChecksum == 0 {
		return fmt.Errorf("the newest state, %s, has no checksum to go on from", tip.Pos)
	}
	txid := tip.Pos.TXID + 1
	h := ltx.Header{
		PageSize: tip.PageSize, Commit: tip.Commit, MinTXID: txid, MaxTXID: txid,
		Timestamp: time.Now().UnixMilli(), PreApplyChecksum: tip.Pos.PostApplyChecksum, NodeID: nodeID,
	}
	var file bytes.Buffer
	enc, err := ltx.NewEncoder(&file, h)
	if err == nil {
		_, err = enc.Close(tip.Pos.PostApplyChecksum)
	}
	if err != nil {
		return err
	}
	info := ltx.FileInfo{Min: txid, Max: txid}
	_, err = r.bucket.Put(ctx, r.Key(info), bytes.NewReader(file.Bytes()), storage.Condition{Absent: true})
	if !errors.Is(err, storage.ErrPrecondition) {
		return err
	}
	return r.checkOurs(ctx, info, h)
}

// checkOurs is a TakenError unless the file that is there is a claim as h is.
func (r *Replica) checkOurs(ctx context.Context, info ltx.FileInfo, h ltx.Header) error {
	body, object, err := r.bucket.Get(ctx, r.Key(info), storage.Range{})
	if err != nil {
		return fmt.Errorf("read back %s: %w", r.Key(info), err)
	}
	defer body.Close()
	info.Size, info.ModTime = object.Size, object.ModTime
	if object.Size != ltx.MinFileSize {
		return &TakenError{File: info}
	}
	b, err := io.ReadAll(io.LimitReader(body, ltx.MinFileSize))
	if err != nil {
		return fmt.Errorf("read back %s: %w", r.Key(info), err)
	}
	there, _, err := ltx.VerifyFile(bytes.NewReader(b))
	there.Timestamp = h.Timestamp
	if h.Version = there.Version; err != nil || there != h {
		return &TakenError{File: info}
	}
	return nil
}

// checkNewest takes a claim back, as a TakenError, when a file of a higher level
// covers it or one of level 0 follows it.
func (r *Replica) checkNewest(ctx context.Context, txid ltx.TXID) error {
	all, err := r.Inventory(ctx)
	if err != nil {
		return fmt.Errorf("look again: %w", err)
	}
	for _, f := range all {
		if f.Max > txid || f.Level > 0 && f.Max == txid {
			err := r.bucket.Delete(ctx, r.Key(ltx.FileInfo{Min: txid, Max: txid}))
			return errors.Join(&TakenError{File: f}, err)
		}
	}
	return nil
}

// Generation returns the generation of the one who wrote the newest file of
// level 0, as its header says; 0: there is none, or it was written without a
// lease.
func (r *Replica) Generation(ctx context.Context) (uint64, error) {
	var err error
	for range tipTries {
		var files []ltx.FileInfo
		if files, err = r.Files(ctx, 0); err != nil || len(files) == 0 {
			return 0, err
		}
		newest := files[len(files)-1]
		var h ltx.Header
		if h, _, err = r.ends(ctx, newest); err == nil {
			return h.NodeID >> 32, nil
		}
		if !errors.Is(err, storage.ErrNotFound) {
			break
		}
	}
	return 0, fmt.Errorf("read generation of %s: %w", r, err)
}
