package compaction

import (
	"context"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
)

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
	return w.merger.create(ctx, ltx.FileInfo{Level: ltx.LevelSnapshot, Min: 1, Max: pos.TXID}, content)
}

// untilConfirmed waits until a TXID is on the bucket and confirmed.
func (w *Worker) untilConfirmed(ctx context.Context, txid ltx.TXID) error {
	for {
		moved := w.moves()
		files, err := w.inventory.load(ctx)
		if err != nil {
			return err
		}
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

// moves returns what is closed at the next news.
func (w *Worker) moves() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.moved
}

// move lets those go on who wait for news.
func (w *Worker) move() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.state.moved)
	w.state.moved = make(chan struct{})
}

// Expire deletes what has expired by a fresh listing. It is the step of Run,
// and may be called beside it. Before the first upload it does nothing, because
// only that shows what time it is by the clock of the bucket.
func (w *Worker) Expire(ctx context.Context) error {
	r := w.options.Config.Retention
	now, known := w.inventory.now()
	if !known {
		return nil
	}
	files, err := w.inventory.load(ctx)
	if err != nil {
		return err
	}
	if len(Expired(files, r, w.confirmed(), now)) > 0 {
		if files, err = w.inventory.list(ctx); err != nil {
			return err
		}
		expired, err := w.retainer.Expire(ctx, files, w.confirmed(), now)
		if err != nil {
			w.inventory.forget()
			return err
		}
		w.inventory.remove(expired)
		w.options.Log.Debug("expired files deleted", "files", len(expired))
	}
	w.mu.Lock()
	w.state.lastDeletion = time.Now()
	w.mu.Unlock()
	if next := nextExpiry(files, r, now); !next.IsZero() {
		w.alarms.expire.set(time.Now().Add(next.Sub(now)))
	}
	return nil
}

// nextExpiry is when files get old enough for something to expire, the next
// pause excepted; zero if nothing gets older any more.
func nextExpiry(files []ltx.FileInfo, r Retention, now time.Time) (next time.Time) {
	for _, f := range files {
		for _, age := range []time.Duration{r.Level0, r.Window} {
			if t := f.ModTime.Add(age); t.After(now) && (next.IsZero() || t.Before(next)) {
				next = t
			}
		}
	}
	if next.IsZero() {
		return next
	}
	return later(next, now.Add(r.pause()))
}
