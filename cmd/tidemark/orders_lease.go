package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/tidemark-io/tidemark/leaser"
)

// moved is the outcome of an order about the lease.
type moved struct {
	Role RoleReport `json:"role"`           // after it
	Code int        `json:"code,omitempty"` // exit code of who asked; 0: done
	Err  string     `json:"error,omitempty"`
}

// orders answers what moves the lease; it belongs behind the socket alone.
func (n *node) orders(mux *http.ServeMux) {
	for name, do := range map[string]func(context.Context, *http.Request) error{
		"promote": n.promote,
		"step-down": func(ctx context.Context, r *http.Request) error {
			if to := r.URL.Query().Get("to"); to != "" {
				return n.leaser.HandOver(ctx, to)
			}
			return n.leaser.StepDown(ctx, "")
		},
	} {
		mux.HandleFunc("POST /"+name, func(w http.ResponseWriter, r *http.Request) {
			timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
			if err != nil || timeout <= 0 || timeout > longestMove {
				http.Error(w, "timeout: use more than 0s, "+longestMove.String()+" at most", http.StatusBadRequest)
				return
			}
			_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // it may take long
			ctx, cancel := context.WithTimeoutCause(r.Context(), timeout, errors.New("not done within "+timeout.String()))
			defer cancel()
			m := moved{}
			if err := do(ctx, r); err != nil {
				m.Err, m.Code = err.Error(), leaseCode(err)
			}
			m.Role = n.Role()
			if err := json.NewEncoder(w).Encode(m); err != nil {
				n.log.Debug("the answer to an order was not read", "error", err)
			}
		})
	}
}

// promote returns once the node is the primary and its databases are open.
func (n *node) promote(ctx context.Context, r *http.Request) error {
	if r.URL.Query().Get("accept-loss") != "" {
		n.log.Warn("databases are served although files of their replicas are missing, because somebody said so")
		n.acceptLoss.Store(true)
	}
	if err := n.leaser.Promote(ctx); err != nil {
		for _, f := range n.databases {
			err = errors.Join(err, f.refusal().err)
		}
		return err
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n.Role().Role != rolePrimary {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}

// leaseCode is the exit code for an error about the lease.
func leaseCode(err error) int {
	if errors.Is(err, leaser.ErrLost) || errors.Is(err, leaser.ErrNotPrimary) {
		return exitFenced
	}
	return exitCode(err)
}
