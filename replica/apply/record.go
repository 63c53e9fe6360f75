package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tidemark-io/tidemark/ltx"
)

// Record reads a database that nobody has open yet and leaves its page sums in
// the state directory, without its place in the chain, which Place adds.
func Record(ctx context.Context, path, stateDir string) (err error) {
	// What an earlier copy left says nothing of this file.
	if err := os.Remove(filepath.Join(stateDir, noteName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	c := &Copy{path: path, file: f}
	s, err := c.look()
	if err != nil {
		return err
	}
	sums, err := ltx.OpenPageSums(filepath.Join(stateDir, sumsName))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sums.Close()) }()
	if s.pageSize == 0 {
		s.pageSize = emptyPageSize
	}
	sum, err := sumUp(ctx, f, s, sums)
	if err != nil {
		return err
	}
	return sums.Commit(ltx.Pos{PostApplyChecksum: sum}, s.pageSize, s.pages)
}

// Place says which position of the chain the page sums in the state directory
// are of. It wraps ErrMismatch when they are not.
func Place(stateDir string, pos ltx.Pos) (err error) {
	sums, err := ltx.OpenPageSums(filepath.Join(stateDir, sumsName))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sums.Close()) }()
	if at := sums.Pos(); at.PostApplyChecksum != pos.PostApplyChecksum {
		return fmt.Errorf("%w: the page sums are those of %s, want %s", ErrMismatch, at, pos)
	}
	return sums.Commit(pos, sums.PageSize(), sums.Pages())
}
