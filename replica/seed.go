package replica

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-io/tidemark/replica/apply"
)

// Seed restores a database to a node that has none, as Restore does, and leaves
// the page sums in the state directory before the file has its name: apply.Open
// goes on from there without reading the file. The caller holds the lock of the
// state directory, which exists.
func Seed(ctx context.Context, r *Replica, stateDir string, o RestoreOptions) (RestoreResult, error) {
	check := o.Check
	o.Check = func(ctx context.Context, path string) error {
		var err error
		if check != nil {
			err = check(ctx, path)
		}
		return errors.Join(err, apply.Record(ctx, path, stateDir))
	}
	result, err := Restore(ctx, r, o)
	if err != nil {
		return RestoreResult{}, err
	}
	if err := apply.Place(stateDir, result.Pos); err != nil {
		return RestoreResult{}, fmt.Errorf("note the position of %s: %w", o.Path, err)
	}
	return result, nil
}
