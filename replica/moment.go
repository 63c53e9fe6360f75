package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/storage"
)

// timesJobs is how many headers are read at a time.
const timesJobs = 16

// ErrOutside is wrapped by OutsideError.
var ErrOutside = errors.New("the time is before everything that can be restored")

// OutsideError says that nothing can be restored of a time, and of which times
// something can.
type OutsideError struct {
	Asked       time.Time
	First, Last Point
}

// Error names the time and what is covered.
func (e *OutsideError) Error() string {
	return fmt.Sprintf("%s: %v; covered is from %s (transaction %s) to %s (transaction %s)", e.Asked.Format(timeForm), ErrOutside,
		e.First.Time.Format(timeForm), e.First.TXID, e.Last.Time.Format(timeForm), e.Last.TXID)
}

// Unwrap makes errors.Is(err, ErrOutside) true.
func (e *OutsideError) Unwrap() error { return ErrOutside }

// Moment is what can be restored of a time.
type Moment struct {
	Point       // the newest state that is not newer than the time
	Next  Point // the nearest later one; TXID 0: there is none
}

// At returns the newest state that was committed at or before t. It takes one
// listing and reads the headers of few files: twice the logarithm of their
// number at most. The errors to act on are OutsideError, UnreachableError where
// files are missing on the way to that state, and ErrNoBackup.
func (r *Replica) At(ctx context.Context, t time.Time) (Moment, error) {
	a := newAim(r, RestoreOptions{Time: t})
	for {
		files, err := a.list(ctx)
		if err != nil {
			return Moment{}, err
		}
		m, err := a.clock.at(ctx, files, t)
		if err == nil || !a.again(err) {
			return m, err
		}
	}
}

// clock tells when states were committed, by the headers of files.
type clock struct {
	replica *Replica
	told    map[string]time.Time // by key; zero: the file is damaged
}

// of returns the time of the last commit in a file; errUntold if it is damaged.
func (c *clock) of(ctx context.Context, f ltx.FileInfo) (time.Time, error) {
	key := c.replica.Key(f)
	t, known := c.told[key]
	if !known {
		h, err := c.replica.headerOf(ctx, f)
		switch {
		case err == nil:
			t = time.UnixMilli(h.Timestamp)
		case !isDamage(err):
			return t, err
		}
		c.told[key] = t
	}
	if t.IsZero() {
		return t, errUntold
	}
	return t, nil
}

// at finds the state of a time among the files of a listing.
func (c *clock) at(ctx context.Context, files []ltx.FileInfo, t time.Time) (Moment, error) {
	txid, err := searchTime(files, t, func(f ltx.FileInfo) (time.Time, error) { return c.of(ctx, f) })
	if err != nil {
		return Moment{}, err
	}
	states := States(files)
	i, reachable := slices.BinarySearch(states, txid)
	if !reachable {
		var e *UnreachableError
		if err := unreachable(files, 0, txid); txid > 0 && errors.As(err, &e) && e.Missing != 0 {
			return Moment{}, c.complete(ctx, files, e)
		}
		i-- // the state was merged into a file that ends later
	}
	if i < 0 {
		return Moment{}, c.outside(ctx, files, t)
	}
	m := Moment{Point: Point{TXID: states[i]}}
	if m.Time, err = c.when(ctx, files, states[i]); err != nil {
		return Moment{}, err
	}
	if i+1 < len(states) {
		m.Next.TXID = states[i+1]
		m.Next.Time, err = c.when(ctx, files, states[i+1])
	}
	return m, err
}

// outside returns the range that is covered.
func (c *clock) outside(ctx context.Context, files []ltx.FileInfo, t time.Time) error {
	states := States(files)
	if len(states) == 0 {
		return unreachable(files, 0, newestOf(files))
	}
	e := &OutsideError{Asked: t, First: Point{TXID: states[0]}, Last: Point{TXID: states[len(states)-1]}}
	var err1, err2 error
	e.First.Time, err1 = c.when(ctx, files, e.First.TXID)
	e.Last.Time, err2 = c.when(ctx, files, e.Last.TXID)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return e
}

// when returns the time of a state; zero if no file tells.
func (c *clock) when(ctx context.Context, files []ltx.FileInfo, txid ltx.TXID) (time.Time, error) {
	ending := slices.DeleteFunc(slices.Clone(files), func(f ltx.FileInfo) bool { return f.Max != txid })
	slices.SortFunc(ending, func(a, b ltx.FileInfo) int { return rank(a) - rank(b) })
	for _, f := range ending {
		t, err := c.of(ctx, f)
		if !errors.Is(err, errUntold) {
			return t, err
		}
	}
	return time.Time{}, nil
}

// complete adds the times to an UnreachableError where they can be had.
func (c *clock) complete(ctx context.Context, files []ltx.FileInfo, e *UnreachableError) error {
	for txid, at := range map[ltx.TXID]*time.Time{e.Earlier: &e.EarlierTime, e.Later: &e.LaterTime} {
		if txid == 0 {
			continue
		}
		if t, err := c.when(ctx, files, txid); err == nil {
			*at = t
		}
	}
	return e
}

// headerOf reads the header of a file.
func (r *Replica) headerOf(ctx context.Context, f ltx.FileInfo) (ltx.Header, error) {
	if err := r.checkSize(f); err != nil {
		return ltx.Header{}, err
	}
	head := make([]byte, ltx.HeaderSize)
	if err := r.fetch(ctx, f, head, 0); err != nil {
		return ltx.Header{}, err
	}
	return r.header(f, head)
}

// Times returns when the last commit in each of the files was made, from their
// headers, one small request for each; zero for a file that is damaged or gone.
func (r *Replica) Times(ctx context.Context, files []ltx.FileInfo) ([]time.Time, error) {
	times := make([]time.Time, len(files))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(timesJobs)
	for i, f := range files {
		g.Go(func() error {
			h, err := r.headerOf(ctx, f)
			switch {
			case isDamage(err) || errors.Is(err, storage.ErrNotFound):
				return nil
			case err != nil:
				return err
			}
			times[i] = time.UnixMilli(h.Timestamp)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("read times: %w", err)
	}
	return times, nil
}
