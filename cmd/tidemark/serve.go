package main

import (
	"context"
	"log/slog"
	"net/http"

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

// serveStatus answers until ctx ends.
func serveStatus(ctx context.Context, l *socket.Listener, h http.Handler, log *slog.Logger) error {
	if l == nil {
		<-ctx.Done()
		return nil
	}
	if err := socket.Serve(ctx, l, h); err != nil {
		log.Error("status socket ended", "error", err)
	}
	return nil
}
