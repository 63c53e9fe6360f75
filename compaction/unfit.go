package compaction

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/tidemark-io/tidemark/internal/scratch"
)

// ErrUnfit is wrapped when a snapshot is larger than all scratch space, so that
// trying again is in vain.
var ErrUnfit = errors.New("a snapshot does not fit into the scratch space")

// unfit remembers the replicas whose snapshots do not fit, and when to try
// again.
type unfit struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (u *unfit) of(replica string) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.until[replica]
}

func (u *unfit) note(replica string, until time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if until.IsZero() {
		delete(u.until, replica)
		return
	}
	u.until[replica] = until
}

// unfitting makes an error of a full scratch space ErrUnfit, if what the file has
// and was to get is more than the space may ever hold.
func unfitting(file *scratch.File, err error) error {
	var full *scratch.FullError
	if !errors.As(err, &full) || file.Size()+full.Want <= full.Cap {
		return err
	}
	return fmt.Errorf("%w: it is larger than scratch-limit, %s; raise that above the size of the database (0: no limit)",
		ErrUnfit, humanize.IBytes(uint64(full.Cap)))
}

// patiently makes a snapshot, unless the last one did not fit: databases seldom
// shrink, and what cannot fit is not written again before the next bucket.
func (w *Worker) patiently(ctx context.Context) error {
	name := w.merger.replica.String()
	if until := w.unfit.of(name); time.Now().Before(until) {
		w.alarms.snapshot.set(until)
		return fmt.Errorf("%w: trying again at %s", ErrUnfit, until.UTC().Format(time.RFC3339))
	}
	_, err := w.Snapshot(ctx)
	if !errors.Is(err, ErrUnfit) {
		w.unfit.note(name, time.Time{})
		return err
	}
	until := bucketEnd(time.Now(), w.options.Config.Snapshots)
	w.unfit.note(name, until)
	w.mu.Lock()
	w.state.snapshotDue = until
	w.mu.Unlock()
	w.alarms.snapshot.set(until)
	w.options.Log.Warn("no snapshot is made", "error", err, "again", until.UTC())
	return err
}
