package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/storage"
)

const (
	defaultJobs = 8
	// replans is how often a plan is made anew because a file was merged away
	// before it was read.
	replans = 5
)

// RestoreOptions says what to restore, and where.
type RestoreOptions struct {
	Path     string   // of the database to create
	TXID     ltx.TXID // 0: the newest
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
}

// Restore makes a database file of the state that the replica holds. The file
// appears under its name only whole, verified and synced; on any error nothing
// is left behind, and an existing database is as it was. The result is exactly
// the state asked for, or an error: ErrNoBackup, UnreachableError,
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
	plan, err := r.plan(ctx, o.TXID, nil)
	if err != nil {
		return RestoreResult{}, err
	}
	temp, err := t.open()
	if err != nil {
		return RestoreResult{}, err
	}
	a, files, err := r.assemble(ctx, temp, o, plan)
	if err != nil {
		return RestoreResult{}, err
	}
	if err := t.finish(ctx, o.Check); err != nil {
		return RestoreResult{}, err
	}
	return RestoreResult{
		Pos: a.pos, PageSize: a.pageSize, Pages: a.pages.commit, Files: files, Bytes: a.written.loaded,
	}, nil
}

// assemble fills out, planning again when files vanish or turn out damaged.
func (r *Replica) assemble(
	ctx context.Context, out *os.File, o RestoreOptions, plan []ltx.FileInfo,
) (*assembly, int, error) {
	damaged := map[string]error{}
	for vanished := 0; ; {
		a := &assembly{replica: r, out: out, jobs: o.Parallelism, progress: o.Progress}
		err := a.run(ctx, plan)
		var d *damagedError
		switch {
		case err == nil:
			return a, len(plan), nil
		case errors.As(err, &d):
			r.exclude(damaged, d)
		case isDamage(err):
			found, inspectErr := r.inspect(ctx, plan, o.Parallelism)
			if len(found) == 0 || inspectErr != nil {
				return nil, 0, errors.Join(err, inspectErr)
			}
			r.exclude(damaged, found...)
		case errors.Is(err, storage.ErrNotFound) && vanished < replans:
			vanished++
		default:
			return nil, 0, err
		}
		if plan, err = r.plan(ctx, o.TXID, damaged); err != nil {
			return nil, 0, err
		}
	}
}

func (r *Replica) exclude(damaged map[string]error, found ...*damagedError) {
	for _, d := range found {
		damaged[r.Key(d.file)] = d.err
		r.log.Warn("file is damaged, restoring without it", "file", r.Key(d.file), "error", d.err)
	}
}

// plan lists the files and chooses those that lead to the target: of 0, the
// newest state there is a file of, usable or not.
func (r *Replica) plan(ctx context.Context, target ltx.TXID, damaged map[string]error) ([]ltx.FileInfo, error) {
	all, err := r.Inventory(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: %w", r, ErrNoBackup)
	}
	if target == 0 {
		target = newestOf(all)
	}
	var usable []ltx.FileInfo
	var faults []error
	for _, f := range all {
		err := damaged[r.Key(f)]
		if err == nil {
			err = r.checkSize(f)
		}
		if err == nil {
			usable = append(usable, f)
		} else if len(faults) < namesShown {
			faults = append(faults, err)
		}
	}
	plan, err := Plan(usable, 0, target)
	switch {
	case err == nil:
		return plan, nil
	case len(usable) == 0:
		return nil, errors.Join(faults...)
	}
	return nil, errors.Join(append([]error{err}, faults...)...)
}
