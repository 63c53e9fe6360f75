package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/replica/apply"
)

// lockPatience is how long a local writer may delay the fence before its
// database.
const lockPatience = 5 * time.Second

// settle finds out how the database stands to its replica and opens the copy
// that follows it. What the replica will never hold is set aside first.
func (f *followed) settle(ctx context.Context) error {
	if f.standing() == following {
		return nil
	}
	if err := f.openBetween(ctx); err != nil {
		return err
	}
	if !f.gate.Alone() { // nothing was committed since, and it is still in use
		if f.standing() == inPlace {
			return nil
		}
		return fmt.Errorf("%s: %w: let the application close it, because it is to follow another primary", f.cfg.Path, apply.ErrInUse)
	}
	err := errors.Join(f.gate.Open(), f.let())
	f.gate = nil
	if err == nil {
		err = f.open(ctx)
	}
	if err == nil && f.standing() != inPlace {
		return nil
	}
	if err != nil {
		err = errors.Join(err, f.let())
	}
	if f.standing() == inPlace || errors.Is(err, apply.ErrInUse) {
		return errors.Join(err, f.shut(ctx))
	}
	if isCopy, _ := apply.IsCopy(f.cfg.Path, capture.StateDir(f.cfg.Path)); !isCopy && hasContent(f.cfg.Path) && f.node.fencesWriters() {
		var failed error
		if f.between, failed = f.node.shutGate(ctx, f); failed != nil {
			f.log.Debug("local writers are not kept out", "error", failed)
		}
	}
	return err
}

// openBetween lets writers in who are kept out until it is settled how the
// database stands, if the replica answers: else that cannot be.
func (f *followed) openBetween(ctx context.Context) error {
	if f.between == nil {
		return nil
	}
	if _, err := f.tip(ctx); err != nil {
		return err
	}
	between := f.between
	f.between = nil
	return between.Open()
}

// shut keeps writers out of a database that cannot be made a copy, because
// somebody has it open.
func (f *followed) shut(ctx context.Context) (err error) {
	if f.node.cfg.HA.FenceLocal != fenceLock {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	f.gate, err = shut(ctx, f.cfg.Path)
	return err
}

func (f *followed) open(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(f.cfg.Path), 0o755); err != nil {
		return err
	}
	if err := f.unfence(); err != nil {
		return err
	}
	there := hasContent(f.cfg.Path) || hasContent(f.cfg.Path+"-wal")
	var tail capture.Tail
	isCopy, err := apply.IsCopy(f.cfg.Path, capture.StateDir(f.cfg.Path))
	if there && err != nil {
		return err
	}
	if there && !isCopy {
		if tail, err = capture.CutTail(ctx, f.cfg.Path, capture.Options{Log: f.log}); err != nil {
			return err
		}
	}
	lock, err := capture.LockState(f.cfg.Path)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.lock, f.tail = lock, tail
	f.mu.Unlock()
	switch {
	case !there:
		return f.seed(ctx)
	case tail.Known:
		return f.relate(ctx, tail)
	}
	return f.follow(ctx)
}

// seed restores the database of a node that has none.
func (f *followed) seed(ctx context.Context) error {
	begin := time.Now()
	if err := removeEmpty(f.cfg.Path); err != nil {
		return err
	}
	result, err := replica.Seed(ctx, f.remote.replica, capture.StateDir(f.cfg.Path), restoreOptions(f.cfg.Path))
	if err = f.remote.place.doubt(err); errors.Is(err, replica.ErrNoBackup) {
		f.setStanding(absent)
		return nil
	}
	if err != nil {
		return fmt.Errorf("restore %s: %w", f.cfg.Path, err)
	}
	f.log.Info("restored", "txid", uint64(result.Pos.TXID), "after", time.Since(begin).Round(time.Millisecond))
	return f.follow(ctx)
}

// removeEmpty removes a file that holds nothing, such as SQLite leaves behind.
func removeEmpty(path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Size() > 0 || !info.Mode().IsRegular() {
		return nil
	}
	return os.Remove(path)
}

// relate compares the local history with that of the replica.
func (f *followed) relate(ctx context.Context, tail capture.Tail) error {
	history := make([]ltx.Pos, 0, len(tail.Files))
	for _, file := range tail.Files {
		history = append(history, file.Pos)
	}
	relation, at, err := f.remote.replica.Relate(ctx, tail.Base, history)
	if err != nil {
		return err
	}
	f.log.Info("local history compared with the replica", "relation", relation.String(),
		"common", uint64(at), "end", uint64(tail.End.TXID), "waiting", len(tail.Files))
	switch relation {
	case replica.Ahead:
		f.setStanding(ahead)
		return nil
	case replica.Equal, replica.Behind:
		if err := f.lock.ClearSpool(); err != nil { // the replica holds what it holds
			return err
		}
		err := f.follow(ctx)
		if relation == replica.Equal && errors.Is(err, apply.ErrInUse) {
			f.setStanding(inPlace)
			return nil
		}
		return err
	case replica.Unknown:
		return f.unproven(ctx, tail)
	}
	return f.diverged(ctx, tail, at)
}

// unproven leaves a database as it is that may be the only one to hold what its
// replica held once, unless somebody has accepted the loss.
func (f *followed) unproven(ctx context.Context, tail capture.Tail) error {
	if !f.node.acceptLoss.Load() {
		return fmt.Errorf("%w: %s does not tell that it holds TXID %d, up to which this node had uploaded; put the files back, "+
			"or give up what is missing with tidemark promote -accept-loss", errObjectsLost, f.remote.place, uint64(tail.Base.TXID))
	}
	tip, err := f.tip(ctx)
	if err != nil {
		return err
	}
	if tip.Pos.TXID == 0 { // a new replica begins with what is here
		f.setStanding(fresh)
		return nil
	}
	return f.diverged(ctx, tail, 0)
}

// diverged sets aside what the replica will never hold and makes the file a
// copy of the replica; only what either side changed since the transaction
// common is fetched.
func (f *followed) diverged(ctx context.Context, tail capture.Tail, common ltx.TXID) error {
	if err := f.setAside(ctx, tail, common); err != nil {
		return err
	}
	f.aside = false
	c, err := f.openCopy(ctx)
	if err != nil {
		return err
	}
	var local []string
	for _, file := range tail.Files {
		if file.Pos.TXID > common {
			local = append(local, file.Path)
		}
	}
	if err := c.Reseed(ctx, common, local...); err != nil {
		return err
	}
	f.setStanding(following)
	return f.lock.ClearSpool()
}

// follow opens the file as a copy of the replica.
func (f *followed) follow(ctx context.Context) error {
	if tip, err := f.tip(ctx); err != nil || tip.Pos.TXID == 0 {
		if err == nil {
			f.setStanding(fresh)
		}
		return err
	}
	if f.aside {
		return f.diverged(ctx, capture.Tail{}, 0)
	}
	if err := f.lock.ClearSpool(); err != nil {
		return err
	}
	if _, err := f.openCopy(ctx); err != nil {
		return err
	}
	f.setStanding(following)
	return nil
}

func (f *followed) openCopy(ctx context.Context) (*replica.Follower, error) {
	c, err := apply.Open(ctx, f.cfg.Path, capture.StateDir(f.cfg.Path), apply.Options{Log: f.log})
	if err != nil {
		return nil, err
	}
	follower := replica.NewFollower(f.remote.replica, c, replica.FollowOptions{
		Interval: f.node.cfg.HA.FollowInterval, Scratch: f.node.workshop.scratch, Log: f.log, Gate: &f.remote.gate,
		Foreign: func(_ context.Context, found error) error {
			select {
			case f.touched <- struct{}{}:
			default:
			}
			return errAside
		},
	})
	f.mu.Lock()
	f.copy, f.follower = c, follower
	f.mu.Unlock()
	return follower, f.fence(ctx, c)
}

func (f *followed) setStanding(s standing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stands = s
}
