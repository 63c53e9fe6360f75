package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/capture"
)

// Once brings what is committed now to the replicas and returns.
func (s *sidecar) Once(ctx context.Context, patience time.Duration) error {
	err := s.each(func() error { return s.fleet.Once(ctx, patience) }, func(d *replicated) error {
		if err := d.once(ctx, patience); err != nil {
			return fmt.Errorf("database %s: %w", d.cfg.Path, err)
		}
		return nil
	})
	return errors.Join(err, s.Close())
}

// once gives up when the replica cannot be reached for longer than patience.
func (d *replicated) once(ctx context.Context, patience time.Duration) error {
	if err := d.open(ctx); err != nil {
		return err
	}
	if !exists(d.cfg.Path) {
		return errors.New("the file does not exist; nothing was uploaded")
	}
	p := d.parts
	if err := p.capturer.Capture(ctx); err != nil {
		return err
	}
	if p.capturer.Status().State == capture.StateWaiting {
		return errors.New("there is no database in the file yet; nothing was uploaded")
	}
	p.source.hurry()
	ctx, give := context.WithCancelCause(ctx)
	defer give(nil)
	done := make(chan struct{})
	var group errgroup.Group
	group.Go(func() error {
		defer close(done)
		return p.uploader.Flush(ctx)
	})
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return group.Wait()
		case <-tick.C:
			if s := p.uploader.Status(); s.LastError != nil && time.Since(s.ErrorSince) > patience {
				give(fmt.Errorf("no upload for %s: %w", patience, s.LastError))
			}
		}
	}
}
