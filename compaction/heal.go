package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-io/tidemark/ltx"
)

// errSound says that a file that seemed damaged is not.
var errSound = errors.New("the file is not damaged")

// heal has a damaged file replaced: by a copy that is here, else by a snapshot
// that stands in for it. It tells whether the file is whole again.
func (w *Worker) heal(ctx context.Context, bad SourceError) bool {
	log := w.options.Log.With("key", bad.Key, "damage", bad.Err)
	err := w.replace(ctx, bad.File)
	if err == nil {
		log.Warn("file was damaged on the bucket, stored it again")
		return true
	}
	w.inventory.exclude(bad.File)
	if w.options.Snapshotter == nil {
		log.Warn("file is damaged on the bucket, and nothing can stand in for it", "reason", err)
		return false
	}
	log.Warn("file is damaged on the bucket, making a snapshot that stands in for it", "reason", err)
	w.mu.Lock()
	w.state.wanted = true
	w.mu.Unlock()
	w.alarms.snapshot.ring()
	w.alarms.merge.ring()
	return false
}

// replace deletes a damaged file and stores its copy. The newest name of level 0
// is not given free for that: another writer may want it.
func (w *Worker) replace(ctx context.Context, f ltx.FileInfo) error {
	if w.options.Shelf == nil || w.options.Config.Retention.External {
		return errors.New("it cannot be replaced")
	}
	c, err := w.copyOf(f)
	if err != nil {
		return err
	}
	defer c.Close()
	files, err := w.inventory.list(ctx)
	if err != nil {
		return err
	}
	if f.Level == 0 && !slices.ContainsFunc(files, func(o ltx.FileInfo) bool { return o.Level == 0 && o.Max > f.Max }) {
		return errors.New("it is the newest one")
	}
	if err := w.deleteDamaged(ctx, f); err != nil {
		return err
	}
	stored, err := w.merger.create(ctx, f, c)
	if err != nil {
		w.inventory.forget()
		return err
	}
	w.inventory.add(stored)
	return nil
}

// deleteDamaged deletes a file that is damaged still.
func (w *Worker) deleteDamaged(ctx context.Context, f ltx.FileInfo) error {
	if err := w.confirm(ctx); err != nil {
		return err
	}
	switch err := w.merger.proveFile(ctx, f); {
	case err == nil:
		w.inventory.include(f)
		return fmt.Errorf("%s: %w", w.merger.replica.Key(f), errSound)
	case !isBad(err):
		return err
	}
	if err := w.retainer.delete(ctx, []ltx.FileInfo{f}); err != nil {
		return fmt.Errorf("delete damaged file: %w", err)
	}
	w.inventory.remove([]ltx.FileInfo{f})
	return nil
}

// storeSnapshot stores a snapshot. If the file that has its name is damaged, it
// gets the name of a lower level: nothing is stored over another file, and none
// is deleted before there is one that stands in for it.
func (w *Worker) storeSnapshot(ctx context.Context, txid ltx.TXID, snapshot content) (f ltx.FileInfo, err error) {
	f = ltx.FileInfo{Level: ltx.LevelSnapshot, Min: 1, Max: txid}
	for ; f.Level > 0; f.Level-- {
		if w.inventory.excludes(f) {
			continue
		}
		stored, err := w.merger.create(ctx, f, snapshot)
		if !isBad(err) {
			return stored, err
		}
		w.options.Log.Warn("a damaged file has the name of a snapshot", "key", w.merger.replica.Key(f), "damage", err)
		w.inventory.exclude(f)
	}
	return f, errors.New("every name of the snapshot is that of a damaged file; delete those")
}

// sweep deletes the damaged snapshots that a good one stands in for: those who
// know nothing of the damage would take them.
func (w *Worker) sweep(ctx context.Context, good ltx.FileInfo) error {
	if w.options.Config.Retention.External || len(w.inventory.damaged()) == 0 {
		return nil
	}
	files, err := w.inventory.list(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(files, func(f ltx.FileInfo) bool { return keyOf(f) == keyOf(good) }) {
		return nil
	}
	var errs []error
	for _, f := range w.inventory.damaged() {
		if !f.IsSnapshot() || f.Max > good.Max {
			continue
		}
		err := w.deleteDamaged(ctx, f)
		if err == nil {
			w.forget([]ltx.FileInfo{f})
			w.options.Log.Warn("damaged snapshot deleted", "key", w.merger.replica.Key(f), "instead", w.merger.replica.Key(good))
		} else if !errors.Is(err, errSound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
