// Package web is what a running process answers over HTTP: whether it lives,
// whether it does its work, and how much of it. It only reads, and knows of the
// work nothing but the functions it is given.
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// CheckAddr refuses what is no address to listen on; empty means none.
func CheckAddr(addr string) error {
	if addr == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("addr: %q is not host:port; use 127.0.0.1:9090, or :9090 for every interface", addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("addr: %q: the port is a number from 0 (any that is free) to 65535", addr)
	}
	if host != "" && host != "localhost" && net.ParseIP(host) == nil && !isName(host) {
		return fmt.Errorf("addr: %q is no host", host)
	}
	return nil
}

// isName tells whether s may be the name of a host.
func isName(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.' {
			return false
		}
	}
	return true
}

// Listen takes the address. The caller closes the listener; Serve does.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("addr %s: another process listens there; stop it or choose another port", addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("addr %s: this machine does not have that address", addr)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("addr %s: not permitted; ports below 1024 are for root, choose a higher one", addr)
	case err != nil:
		return nil, fmt.Errorf("addr %s: %w", addr, err)
	}
	return l, nil
}

// Serve answers on l until ctx ends, and closes it. What goes wrong with a
// connection is the client's affair and logged for debugging only.
func Serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return RunServer(ctx, server, l)
}

// RunServer has server answer on l until ctx ends, and closes both.
func RunServer(ctx context.Context, server *http.Server, l net.Listener) error {
	var group errgroup.Group
	ended := make(chan struct{})
	group.Go(func() error {
		select {
		case <-ctx.Done():
		case <-ended:
		}
		return server.Close()
	})
	err := server.Serve(l)
	close(ended)
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, group.Wait())
}
