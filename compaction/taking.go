package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
)

// snapshot makes one if it is due or wanted.
func (w *Worker) snapshot(ctx context.Context) error {
	files, err := w.inventory.load(ctx)
	if err != nil {
		return err
	}
	s := look(files, w.options.Config, w.confirmed(), time.Now())
	w.mu.Lock()
	w.state.snapshotDue = s.snapshotDue
	wanted := w.state.wanted
	w.mu.Unlock()
	if !wanted && !slices.ContainsFunc(s.jobs, Job.Snapshot) {
		w.alarms.snapshot.set(s.snapshotNext)
		return nil
	}
	err = w.patiently(ctx)
	if err != nil && !errors.Is(err, ErrUnfit) {
		w.inventory.forget()
	}
	return err
}

// Snapshot makes one now and returns its file. If nothing is newer than the
// newest snapshot, it is that one, which is read whole: if it is damaged, it is
// replaced.
func (w *Worker) Snapshot(ctx context.Context) (ltx.FileInfo, error) {
	done, err := hold(ctx, w.taking)
	if err != nil {
		return ltx.FileInfo{}, err
	}
	defer done()
	files, err := w.inventory.load(ctx)
	if err != nil {
		return ltx.FileInfo{}, err
	}
	if f, ok := upToDate(files); ok {
		damage, err := w.merger.damage(ctx, f)
		if err != nil {
			return ltx.FileInfo{}, err
		}
		if damage == nil || w.heal(ctx, SourceError{f, w.merger.replica.Key(f), damage}) {
			w.took()
			return f, nil
		}
	}
	f, err := w.take(ctx)
	if err != nil {
		return ltx.FileInfo{}, fmt.Errorf("snapshot: %w", err)
	}
	w.options.Metrics.snapshot(f)
	w.inventory.add(f)
	w.took()
	w.news(f)
	if err := w.sweep(ctx, f); err != nil {
		w.options.Log.Warn("damaged snapshots are still there", "error", err)
	}
	return f, nil
}

// upToDate returns the newest snapshot, if nothing but claims is newer.
func upToDate(files []ltx.FileInfo) (newest ltx.FileInfo, ok bool) {
	for _, f := range files {
		if usable(f) && f.IsSnapshot() && f.Max > newest.Max {
			newest = f
		}
	}
	return newest, newest.Max > 0 && !slices.ContainsFunc(files, func(f ltx.FileInfo) bool {
		return f.Max > newest.Max && !isClaim(f)
	})
}

// took notes that a snapshot was made that was wanted.
func (w *Worker) took() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.wanted = false
}

// take makes a snapshot and uploads it once its position is confirmed: before
// that it could become the newest state of a history that never was. Others
// have their turn meanwhile.
func (w *Worker) take(ctx context.Context) (ltx.FileInfo, error) {
	done, err := w.turn(ctx)
	if err != nil {
		return ltx.FileInfo{}, err
	}
	content, pos, err := w.merger.capture(ctx, w.options.Snapshotter)
	done()
	if err != nil {
		return ltx.FileInfo{}, err
	}
	defer content.Close()
	if err := w.untilConfirmed(ctx, pos.TXID); err != nil {
		return ltx.FileInfo{}, err
	}
	if err := w.confirm(ctx); err != nil {
		return ltx.FileInfo{}, err
	}
	if done, err = w.turn(ctx); err != nil {
		return ltx.FileInfo{}, err
	}
	defer done()
	files, err := w.inventory.load(ctx)
	if err != nil {
		return ltx.FileInfo{}, err
	}
	if err := w.merger.checkDiverged(ctx, files, pos); err != nil {
		return ltx.FileInfo{}, err
	}
	return w.storeSnapshot(ctx, pos.TXID, content)
}

// untilConfirmed waits until a TXID is on the bucket and confirmed.
func (w *Worker) untilConfirmed(ctx context.Context, txid ltx.TXID) error {
	for {
		moved := w.moves()
		files, err := w.inventory.load(ctx)
		if err != nil {
			return err
		}
		files = append(files, w.inventory.damaged()...)
		if w.confirmed() >= txid && slices.ContainsFunc(files, func(f ltx.FileInfo) bool { return f.Max >= txid }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-moved:
		}
	}
}
