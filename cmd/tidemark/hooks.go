package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/kballard/go-shellquote"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/child"
)

// Variables that a hook and the application find in their environment.
const (
	roleVariable       = "TIDEMARK_ROLE"
	generationVariable = "TIDEMARK_GENERATION"
)

// Keys of the hooks.
const (
	keyOnPromote = "on-promote"
	keyOnDemote  = "on-demote"
)

// hook is a program to run when the role of a node changes; zero: none.
type hook struct {
	name    string // the key of the configuration
	command []string
	timeout time.Duration
	reaper  *child.Reaper // nil: none is needed
	log     *slog.Logger
}

// find tells whether the program is there.
func (h hook) find() error {
	if len(h.command) == 0 {
		return nil
	}
	if _, err := exec.LookPath(h.command[0]); err != nil {
		return usagef("%s: %v", h.name, err)
	}
	return nil
}

// Run runs the program with the role in its environment and waits for its end,
// which must come in time and with code 0. What it leaves running is killed.
func (h hook) Run(ctx context.Context, role RoleReport) error {
	if len(h.command) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.timeout, fmt.Errorf("not done within hook-timeout, %s", h.timeout))
	defer cancel()
	program := filepath.Base(h.command[0]) // arguments may hold secrets
	begin := time.Now()
	code, err := child.Command{Args: h.command, Env: role.environment(), Group: true, Reaper: h.reaper}.Run(ctx)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil && code != 0 {
		err = fmt.Errorf("it ended with exit code %d", code)
	}
	if err != nil {
		return fmt.Errorf("%s %q: %w", h.name, program, err)
	}
	h.log.Info("hook done", "hook", h.name, "program", program, "after", time.Since(begin).Round(time.Millisecond))
	return nil
}

// environment is what programs are told of the role.
func (r RoleReport) environment() []string {
	return []string{
		roleVariable + "=" + r.Role,
		generationVariable + "=" + strconv.FormatUint(r.Generation, 10),
	}
}

// commandLine splits the value of a key as a shell would, without one; empty:
// none.
func commandLine(key, line string) ([]string, error) {
	if line == "" {
		return nil, nil
	}
	args, err := shellquote.Split(line)
	if err != nil {
		return nil, fmt.Errorf("%s: it is no command line: %w", key, err)
	}
	if len(args) == 0 || args[0] == "" {
		return nil, errors.New(key + ": it names no program; give the command to run, or remove the key")
	}
	return args, nil
}
