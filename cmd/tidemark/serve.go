package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/socket"
	"github.com/tidemark-io/tidemark/internal/web"
)

// listeners are where a sidecar is asked; nil where it is not.
type listeners struct {
	socket *socket.Listener
	web    net.Listener
}

// listen makes the listeners that cfg describes. Of the socket, only a path
// that was asked for may fail: replication is worth more than its status.
func listen(ctx context.Context, cfg Config, log *slog.Logger) (l listeners, err error) {
	if cfg.Addr != "" {
		if l.web, err = web.Listen(ctx, cfg.Addr); err != nil {
			return listeners{}, err
		}
		log.Info("HTTP is answered", "addr", l.web.Addr().String())
	}
	if l.socket, err = listenSocket(cfg.Socket, log); err != nil && l.web != nil {
		err = errors.Join(err, l.web.Close())
	}
	return l, err
}

func listenSocket(cfg Socket, log *slog.Logger) (*socket.Listener, error) {
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

// serve does what goes on beside replication until ctx ends: it answers where
// it is asked, and tends.
func (s *sidecar) serve(ctx context.Context, l listeners) error {
	if l.web != nil {
		s.buckets.metrics.registry.MustRegister(newReportCollector(s.Report, s.buckets.metrics.label))
	}
	var group errgroup.Group
	group.Go(func() error { s.tend(ctx); return nil })
	group.Go(func() error { return l.serve(ctx, s.Handler(), s.webHandler(), s.log) })
	return group.Wait()
}

// tend cleans buckets, and proves what is there, until ctx ends.
func (s *sidecar) tend(ctx context.Context) {
	var group errgroup.Group
	group.Go(func() error { _ = s.buckets.Run(ctx); return nil })
	group.Go(func() error { _ = s.prove(ctx); return nil })
	_ = group.Wait()
}

// serve answers until ctx ends: who may change something over the socket, others
// over HTTP.
func (l listeners) serve(ctx context.Context, owner, others http.Handler, log *slog.Logger) error {
	var group errgroup.Group
	if l.socket != nil {
		group.Go(func() error {
			if err := socket.Serve(ctx, l.socket, owner, log); err != nil {
				log.Error("status socket ended", "error", err)
			}
			return nil
		})
	}
	if l.web != nil {
		group.Go(func() error {
			if err := web.Serve(ctx, l.web, others, log); err != nil {
				log.Error("HTTP ended", "error", err)
			}
			return nil
		})
	}
	return group.Wait()
}
