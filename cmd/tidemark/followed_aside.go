package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/quarantine"
	"github.com/tidemark-io/tidemark/replica"
)

// traces tell whether a database file was written to since.
type traces struct {
	size, walSize int64
	at, walAt     time.Time
}

func tracesOf(path string) (l traces) {
	if info, err := os.Stat(path); err == nil {
		l.size, l.at = info.Size(), info.ModTime()
	}
	if info, err := os.Stat(path + "-wal"); err == nil {
		l.walSize, l.walAt = info.Size(), info.ModTime()
	}
	return l
}

// setAside keeps a copy of the database, with the files that were never
// uploaded: commits after the transaction common that the replica will not hold.
func (f *followed) setAside(ctx context.Context, tail capture.Tail, common ltx.TXID) error {
	if now := tracesOf(f.cfg.Path); f.kept == now {
		return nil // what came after failed
	}
	in, err := f.divergence(ctx, tail, common)
	if err != nil {
		return err
	}
	entry, err := quarantine.Set(ctx, quarantine.Dir(capture.StateDir(f.cfg.Path)), in)
	if err != nil {
		return fmt.Errorf("set the local commits aside: %w", err)
	}
	f.kept = tracesOf(f.cfg.Path)
	if !tail.Known {
		f.log.Error("nothing tells that the replica holds all of the database, it was set aside", "quarantine", entry.ID, "database", entry.Database())
		return nil
	}
	f.log.Error("local commits are not part of the replica and were set aside", "quarantine", entry.ID,
		"first_txid", uint64(entry.First), "last_txid", uint64(entry.Last), "database", entry.Database())
	return nil
}

// divergence describes where the two histories part.
func (f *followed) divergence(ctx context.Context, tail capture.Tail, common ltx.TXID) (quarantine.Input, error) {
	in := quarantine.Input{Database: f.cfg.Path}
	m := &in.Manifest
	m.Node = f.node.identity.Name
	var err error
	if m.Chain.Generation, err = f.remote.replica.Generation(ctx); err != nil {
		return in, err
	}
	m.Local.Generation = f.node.identity.Generation()
	if !tail.Known {
		return in, nil
	}
	m.First, m.Last = max(common, tail.Base.TXID)+1, tail.End.TXID
	if common > 0 && common < tail.Base.TXID {
		m.First = common + 1
	}
	for _, file := range append([]capture.File{{Pos: tail.Base}}, tail.Files...) {
		switch {
		case file.Pos.TXID == common:
			m.Base = quarantine.Position{TXID: common, Checksum: file.Pos.PostApplyChecksum}
		case file.Pos.TXID > common && file.Path != "":
			in.Files = append(in.Files, file.Path)
			if file.Pos.TXID == m.First {
				m.Local.At = quarantine.Position{TXID: file.Pos.TXID, Checksum: file.Pos.PostApplyChecksum}
			}
		}
	}
	return in, f.firstForeign(ctx, m)
}

// firstForeign says what the replica holds in the place of the first local
// commit that it does not.
func (f *followed) firstForeign(ctx context.Context, m *quarantine.Manifest) error {
	files, err := f.remote.replica.Inventory(ctx)
	if err != nil {
		return err
	}
	for _, file := range files {
		if file.Min <= m.First && m.First <= file.Max {
			m.Foreign = quarantine.Object{Key: f.remote.replica.Key(file), Size: file.Size}
			break
		}
	}
	if at, err := f.remote.replica.PosAt(ctx, m.First); err == nil { // merged away: it cannot be told
		m.Chain.At = quarantine.Position{TXID: at.Pos.TXID, Checksum: at.Pos.PostApplyChecksum}
	}
	return nil
}

// uploadAside uploads one entry, to a place beside the replica.
func (f *followed) uploadAside(ctx context.Context, e quarantine.Entry) error {
	place := f.remote.place
	if place.dir != "" {
		place.dir = filepath.Join(place.dir+".quarantine", f.node.identity.Name)
	} else {
		place.s3.Prefix = path.Join(place.s3.Prefix+".quarantine", f.node.identity.Name)
	}
	r, err := f.node.buckets.remote(ctx, place, f.log)
	if err != nil {
		return err
	}
	return quarantine.Upload(ctx, r.bucket, "", e)
}

// uploadSetAside brings to the bucket what is set aside and not there yet: the
// disk of this node may not last.
func (f *followed) uploadSetAside(ctx context.Context) {
	entries, err := quarantine.List(quarantine.Dir(capture.StateDir(f.cfg.Path)))
	if err != nil {
		f.log.Warn("the quarantine cannot be read", "error", err)
	}
	for _, e := range entries {
		if e.Problem != "" || !e.Uploaded.At.IsZero() || !e.Acknowledged.IsZero() {
			continue
		}
		if err := f.uploadAside(ctx, e); err != nil {
			f.log.Warn("what was set aside is on this disk alone", "quarantine", e.ID, "error", err)
		}
	}
}

// outranked is a replica that a later term has written.
func (f *followed) outranked(ctx context.Context, generation uint64) error {
	there, err := f.remote.replica.Generation(ctx)
	if err != nil {
		return err
	}
	if there > generation {
		return fmt.Errorf("%w: %s was written in generation %d, this node has %d", errOutranked, f.remote.place, there, generation)
	}
	return nil
}

// lost tells of confirmed transactions that the replica does not hold, or holds
// otherwise. What was merged away since cannot be told.
func (f *followed) lost(ctx context.Context, tip replica.Tip, head headOf) error {
	held := tip
	if head.TXID < uint64(tip.Pos.TXID) && head.Chain != "" {
		var err error
		if held, err = f.remote.replica.PosAt(ctx, ltx.TXID(head.TXID)); errors.Is(err, replica.ErrUnreachable) {
			return nil
		} else if err != nil {
			return err
		}
	}
	sum := held.Pos.PostApplyChecksum
	switch {
	case head.TXID > uint64(tip.Pos.TXID):
	case head.TXID == uint64(held.Pos.TXID) && head.Chain != "" && sum != 0 && head.Chain != sum.String():
	default:
		return nil
	}
	return fmt.Errorf("%w: %s ends at TXID %d and does not hold TXID %d as it was confirmed (checksum %s); put the files back, or accept the loss with tidemark promote -accept-loss",
		errObjectsLost, f.remote.place, uint64(tip.Pos.TXID), head.TXID, cmp.Or(head.Chain, "unknown"))
}
