package socket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/tidemark-io/tidemark/internal/web"
)

const maxAnswer = 64 << 20 // bytes

// Serve answers requests until ctx ends, then closes the listener. What goes
// wrong with single connections is logged.
func Serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	return web.RunServer(ctx, server, l)
}

// transport reaches the process behind the socket.
func transport(path string) *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		},
	}
}

// Get asks the process behind the socket and decodes its JSON answer into v.
func Get(ctx context.Context, path, resource string, v any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://tidemark"+resource, nil)
	if err != nil {
		return fmt.Errorf("socket %s: %w", path, err)
	}
	reply, err := (&http.Client{Transport: transport(path), Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		return fmt.Errorf("socket %s: %w", path, errors.Unwrap(err))
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("socket %s: %s answered %s", path, resource, reply.Status)
	}
	if err := json.NewDecoder(io.LimitReader(reply.Body, maxAnswer)).Decode(v); err != nil {
		return fmt.Errorf("socket %s: decode %s: %w", path, resource, err)
	}
	return nil
}

// owner names the process behind a live socket as well as it can be told.
func owner(path string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 250*time.Millisecond)
	defer cancel()
	var who struct {
		PID int `json:"pid"`
	}
	if err := Get(ctx, path, "/status", &who); err != nil || who.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d", who.PID)
}
