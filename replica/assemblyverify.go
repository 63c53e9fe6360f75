package replica

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidemark-io/tidemark/ltx"
)

// verify checks that every page is there and that they are the database the
// newest file is about.
func (a *assembly) verify(plan []ltx.FileInfo) error {
	if !a.complete() {
		pgno := a.claimed.firstMissing(a.pages.lock)
		return fmt.Errorf("%w: page %d of %d is in none of the files %s",
			ltx.ErrCorrupt, pgno, a.pages.commit, a.replica.names(plan))
	}
	sum := ltx.ChecksumFlag | a.written.sum
	if want := a.pos.PostApplyChecksum; want != 0 && sum != want {
		return fmt.Errorf("%w: the database sums up to %s, transaction %s says %s; it was read from %s",
			ltx.ErrChecksum, sum, a.pos.TXID, want, a.replica.names(plan))
	}
	a.pos.PostApplyChecksum = sum
	return nil
}

// namesShown is how many files an error names.
const namesShown = 8

func (r *Replica) names(files []ltx.FileInfo) string {
	var names []string
	for _, f := range files[:min(len(files), namesShown)] {
		names = append(names, r.Key(f))
	}
	if more := len(files) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// inspect reads the files of a plan whole and returns those that are damaged,
// after a database turned out wrong: its checksum cannot tell which file it
// was.
func (r *Replica) inspect(ctx context.Context, plan []ltx.FileInfo, jobs int) ([]*damagedError, error) {
	var damaged []*damagedError
	for _, f := range plan {
		fetch := func(b []byte, offset int64) error { return r.fetch(ctx, f, b, offset) }
		_, _, err := ltx.VerifyFile(newRounds(fetch, f.Size, jobs))
		switch {
		case isDamage(err):
			damaged = append(damaged, &damagedError{f, fmt.Errorf("read %s: %w", r.Key(f), err)})
		case err != nil:
			return nil, err
		}
	}
	return damaged, nil
}

func isDamage(err error) bool {
	return errors.Is(err, ltx.ErrCorrupt) || errors.Is(err, ltx.ErrChecksum)
}
