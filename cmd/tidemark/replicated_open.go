package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

// open makes the parts, once, and before that the database itself where it is
// to be restored.
func (d *replicated) open(ctx context.Context) error {
	d.mu.Lock()
	there := d.parts != nil
	d.mu.Unlock()
	if there {
		return nil
	}
	if err := d.bring(ctx); err != nil {
		return err
	}
	capturer, err := capture.New(d.cfg.Path, d.cfg.Capture, capture.Options{
		Tip: d.askTip, History: history{d.remote.replica, d.cfg.Path},
		Log: d.log, Metrics: d.remote.buckets.metrics.capture(d.cfg.Path),
		Watcher: d.from.watcher, Holder: d.from.holder, Resume: d.from.resume,
		NodeID: d.from.lease.nodeID(), KeepUploaded: d.from.lease != nil,
	})
	if err != nil {
		return err
	}
	var worker *keeper
	if w := d.from.workshop; w != nil {
		worker = w.worker(d.remote, compaction.Options{
			Config: d.cfg.compaction, Snapshotter: capturer, Log: d.log, Metrics: d.remote.buckets.metrics.compaction(d.cfg.Path),
			Confirm: d.from.lease.confirmation(),
		})
	}
	src := newSource(capturer.Spool(), d.cfg.Replica.SyncInterval, d.from.notBefore)
	p := &parts{capturer: capturer, source: src, worker: worker, uploader: replica.NewUploader(d.remote.replica, src, replica.UploaderOptions{
		Stored:   d.keepCopy,
		Uploaded: func(f ltx.FileInfo, _ ltx.Pos) { d.noteUpload(worker, f) },
	})}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parts = p
	close(d.opened)
	return nil
}

// askTip asks the replica where it ends, and remembers whether it answered.
func (d *replicated) askTip(ctx context.Context) (capture.Tip, error) {
	tip, err := d.remote.askTip(ctx)
	d.from.tipFails.Store(err != nil)
	if err == nil {
		d.succeeded(tipless)
		d.noteAnswer()
		if d.from.asked != nil {
			d.from.asked(d.remote.lastTip())
		}
	}
	return tip, err
}

func (d *replicated) succeeded(outagesThatEnd ...condition) {
	if d.from.succeeded != nil {
		d.from.succeeded(outagesThatEnd...)
	}
}

// bring makes the database what its replica ends with, where that is wanted.
func (d *replicated) bring(ctx context.Context) (err error) {
	if d.from.lease == nil {
		return d.restoreIfMissing(ctx)
	}
	if d.from.resume, err = d.from.lease.bring(ctx); err != nil || d.from.resume == nil {
		return err
	}
	// The replica will not be asked: it was, when the database was claimed.
	d.remote.noteTip(d.from.lease.start())
	d.noteAnswer()
	return nil
}

func (d *replicated) restoreIfMissing(ctx context.Context) error {
	if !d.cfg.RestoreIfMissing || exists(d.cfg.Path) {
		return nil
	}
	begin := time.Now()
	result, err := replica.Restore(ctx, d.remote.replica, restoreOptions(d.cfg.Path))
	if err = d.remote.place.doubt(err); errors.Is(err, replica.ErrNoBackup) {
		d.log.Info("nothing to restore", "replica", d.remote.place.String())
		// Whoever makes the database may make its directory, but the state
		// beside it is there first.
		return os.MkdirAll(filepath.Dir(d.cfg.Path), 0o755)
	}
	if err != nil {
		return fmt.Errorf("restore %s: %w", d.cfg.Path, err)
	}
	d.log.Info("restored", "txid", uint64(result.Pos.TXID), "after", time.Since(begin).Round(time.Millisecond))
	return nil
}

// drain captures until it succeeds, then uploads until nothing is left.
func (d *replicated) drain(ctx context.Context) error {
	d.use.RLock()
	defer d.use.RUnlock()
	d.mu.Lock()
	p := d.parts
	closed := p.closed
	d.mu.Unlock()
	if closed {
		return replica.ErrFenced
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		return struct{}{}, p.capturer.Capture(ctx)
	}, backoff.WithMaxElapsedTime(0))
	if err != nil {
		return err
	}
	defer p.source.hurry()()
	return p.uploader.Flush(ctx)
}

// reason says why there was no success before the end of a context.
func (d *replicated) reason(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.parts == nil {
		return errors.Join(err, d.err)
	}
	if last := d.parts.uploader.Status().LastError; last != nil {
		return fmt.Errorf("%w; last error: %w", err, last)
	}
	if last := d.parts.capturer.Status().LastError; last != "" {
		return fmt.Errorf("%w; last error: %s", err, last)
	}
	return err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
