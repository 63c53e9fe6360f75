package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// answer is one line of what a sidecar replies to an order: how far it is, and
// at last the outcome.
type answer struct {
	Progress string       `json:"progress,omitempty"`
	Sync     *synced      `json:"sync,omitempty"`
	Snapshot *snapshotted `json:"snapshot,omitempty"`
	Compact  *compacted   `json:"compact,omitempty"`
	Error    string       `json:"error,omitempty"`
}

// snapshotted is the newest snapshot.
type snapshotted struct {
	TXID uint64 `json:"txid"`
	Size int64  `json:"bytes"`
	Made bool   `json:"made"` // false: nothing changed since
}

// compacted is what merging made.
type compacted struct {
	Merged int           `json:"files_made"`
	Levels []LevelReport `json:"levels"`
}

const (
	progressEvery = 500 * time.Millisecond
	longestSync   = time.Hour
)

// orders answers what changes something; it belongs behind the socket alone.
func (s *sidecar) orders(mux *http.ServeMux) {
	for name, do := range map[string]func(context.Context, orderable, *http.Request, func(answer)) (answer, error){
		"sync": orderSync, "snapshot": orderSnapshot, "compact": orderCompact,
	} {
		mux.HandleFunc("POST /"+name, func(w http.ResponseWriter, r *http.Request) {
			d := s.find(r.URL.Query().Get("db"))
			if d == nil {
				http.Error(w, "this sidecar does not replicate that database", http.StatusNotFound)
				return
			}
			_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // it may take long
			out := json.NewEncoder(w)
			say := func(a answer) {
				if err := errors.Join(out.Encode(a), http.NewResponseController(w).Flush()); err != nil {
					s.log.Debug("the answer to an order was not read", "error", err)
				}
			}
			a, err := do(r.Context(), d, r, say)
			if err != nil {
				a.Error = err.Error()
			}
			say(a)
		})
	}
}

// orderable is a database that orders are for.
type orderable interface {
	// sync brings what is committed to the replica, or says how far it got.
	sync(ctx context.Context) (synced, error)
	// captureNow captures what is committed and has it uploaded.
	captureNow(ctx context.Context) (synced, error)
	// withKeeper calls do with the worker of the replica.
	withKeeper(ctx context.Context, do func(context.Context, *keeper) error) error
}

// find returns the database at a path, an absolute one; nil: it is none of ours.
func (s *sidecar) find(path string) orderable {
	for _, d := range s.databases {
		if sameFile(d.cfg.Path, path) {
			return d
		}
	}
	if slot := s.fleet.slot(resolved(path)); slot != nil {
		return slot
	}
	return nil
}

func orderSync(ctx context.Context, d orderable, r *http.Request, _ func(answer)) (answer, error) {
	timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 || timeout > longestSync {
		return answer{}, fmt.Errorf("timeout: use more than 0s, %s at most", longestSync)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not done within %s", timeout))
	defer cancel()
	do := d.captureNow
	if r.URL.Query().Get("wait") != "" {
		do = d.sync
	}
	reached, err := do(ctx)
	return answer{Sync: &reached}, err
}

func orderSnapshot(ctx context.Context, d orderable, _ *http.Request, say func(answer)) (answer, error) {
	say(answer{Progress: "uploading what is committed"})
	if _, err := d.sync(ctx); err != nil {
		return answer{}, err
	}
	var result answer
	err := d.withKeeper(ctx, func(ctx context.Context, k *keeper) error {
		before := k.gauge.begun.Load()
		return during(ctx, func() { say(answer{Progress: k.gauge.progress(before)}) }, func(ctx context.Context) error {
			f, err := k.Worker.Snapshot(ctx)
			result.Snapshot = &snapshotted{TXID: uint64(f.Max), Size: f.Size, Made: k.gauge.begun.Load() != before}
			return err
		})
	})
	if err != nil {
		return answer{}, err
	}
	return result, nil
}

func orderCompact(ctx context.Context, d orderable, _ *http.Request, say func(answer)) (answer, error) {
	var result answer
	err := d.withKeeper(ctx, func(ctx context.Context, k *keeper) error {
		before := k.Status().Merged
		merged := func() int { return k.Status().Merged - before }
		err := during(ctx, func() { say(answer{Progress: fmt.Sprintf("%d files made", merged())}) }, k.Merge)
		result.Compact = &compacted{Merged: merged(), Levels: newCompactionReport(k.Status()).Levels}
		return err
	})
	if err != nil {
		return answer{}, err
	}
	return result, nil
}

// during does something and tells how far it is meanwhile.
func during(ctx context.Context, tell func(), do func(context.Context) error) error {
	var group errgroup.Group
	done := make(chan struct{})
	group.Go(func() error {
		defer close(done)
		return do(ctx)
	})
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return group.Wait()
		case <-tick.C:
			tell()
		}
	}
}
