package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
)

const defaultJobs = 8

// RestoreOptions says what to restore, and where.
type RestoreOptions struct {
	Path string   // of the database to create
	TXID ltx.TXID // 0: the newest
	// Time, if not zero, takes the place of TXID: the newest state that was
	// committed at or before it.
	Time     time.Time
	Existing Existing // what to do with a database that is there
	// Parallelism is the number of requests at a time, default 8. Each takes
	// some 5 MiB of memory.
	Parallelism int
	// Check, if not nil, looks at the restored database before it gets its
	// name; an error ends the restore. It must not change the file.
	Check func(ctx context.Context, path string) error
	// Progress, if not nil, is told the bytes of the database written and all
	// to be written. Calls do not overlap; done starts again when the files
	// changed in the middle.
	Progress func(done, total int64)
}

// RestoreResult is what a restore did.
type RestoreResult struct {
	Pos      ltx.Pos // the checksum is computed where the files carry none
	PageSize uint32
	Pages    uint32 // size of the database
	Files    int    // files the plan took
	Bytes    int64  // read from the bucket
	Duration time.Duration
	Time     time.Time // when the state was committed, as its file tells
	Next     Point     // where a time was asked for: the nearest later state; TXID 0: none
	Newest   ltx.TXID  // that the replica has a file of
}

// Restore makes a database file of the state that the replica holds. The file
// appears under its name only whole, verified and synced; on any error nothing
// is left behind, and an existing database is as it was. The result is exactly
// the state asked for, or an error: ErrNoBackup, UnreachableError, OutsideError,
// ErrTargetExists, ErrInUse, or what else went wrong. A damaged file is
// replaced by others that hold the same, if there are any.
//
// This process must not have the database open: SQLite's locks on it would be
// lost.
func Restore(ctx context.Context, r *Replica, o RestoreOptions) (RestoreResult, error) {
	start := time.Now()
	if o.Parallelism <= 0 {
		o.Parallelism = defaultJobs
	}
	t, err := newTarget(o.Path, o.Existing)
	if err != nil {
		return RestoreResult{}, fmt.Errorf("restore to %s: %w", o.Path, err)
	}
	result, err := restore(ctx, r, t, o)
	if err != nil {
		return RestoreResult{}, fmt.Errorf("restore to %s: %w", o.Path, errors.Join(err, t.discard()))
	}
	result.Duration = time.Since(start)
	return result, nil
}

func restore(ctx context.Context, r *Replica, t *target, o RestoreOptions) (RestoreResult, error) {
	// Without a plan not even a temporary file is made.
	to := newAim(r, o)
	plan, err := to.plan(ctx)
	if err != nil {
		return RestoreResult{}, err
	}
	temp, err := t.open()
	if err != nil {
		return RestoreResult{}, err
	}
	a, files, err := to.assemble(ctx, temp, o, plan)
	if err != nil {
		return RestoreResult{}, err
	}
	if err := t.finish(ctx, o.Check); err != nil {
		return RestoreResult{}, err
	}
	return RestoreResult{
		Pos: a.pos, PageSize: a.pageSize, Pages: a.pages.commit, Files: files, Bytes: a.written.loaded,
		Time: a.time, Next: to.moment.Next, Newest: to.newest,
	}, nil
}

// assemble fills out, planning again when files vanish or turn out damaged.
func (a *aim) assemble(
	ctx context.Context, out *os.File, o RestoreOptions, plan []ltx.FileInfo,
) (*assembly, int, error) {
	for {
		built := &assembly{replica: a.replica, out: out, jobs: o.Parallelism, progress: o.Progress}
		err := built.run(ctx, plan)
		var d *damagedError
		switch {
		case err == nil:
			return built, len(plan), nil
		case errors.As(err, &d):
			a.exclude(d)
		case isDamage(err):
			if plan, err = a.mend(ctx, plan, err, o.Parallelism); err != nil {
				return nil, 0, err
			}
			continue
		case !a.again(err):
			return nil, 0, err
		}
		if plan, err = a.plan(ctx); err != nil {
			return nil, 0, err
		}
	}
}
