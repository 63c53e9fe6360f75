package main

import (
	"context"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/socket"
)

// listen makes the socket that cfg describes; nil when there is none. Only a
// path that was asked for may fail: replication is worth more than its status.
func listen(cfg Socket, log *slog.Logger) (*socket.Listener, error) {
	if !cfg.Enabled {
		return nil, nil
	}
	if cfg.Path != "" {
		return socket.Listen(cfg.Path, cfg.mode())
	}
	err := socket.MakeDefaultDir()
	var l *socket.Listener
	if err == nil {
		l, err = socket.Listen(socket.DefaultPath(), cfg.mode())
	}
	if err != nil {
		log.Warn("no status socket; set socket: to a path or to off", "error", err)
		return nil, nil
	}
	return l, nil
}

// serve does what goes on beside replication until ctx ends: it answers on l,
// if that is not nil, and cleans buckets.
func (s *sidecar) serve(ctx context.Context, l *socket.Listener) error {
	var group errgroup.Group
	group.Go(func() error { _ = s.buckets.Run(ctx); return nil })
	if l != nil {
		group.Go(func() error {
			if err := socket.Serve(ctx, l, s.Handler()); err != nil {
				s.log.Error("status socket ended", "error", err)
			}
			return nil
		})
	}
	return group.Wait()
}
