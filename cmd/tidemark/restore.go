package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/replica"
)

func restoreCommand() *cli.Command {
	return &cli.Command{
		Name:      "restore",
		Usage:     "restore a database from its replica",
		ArgsUsage: "URL|DB",
		Description: "Restores from URL to the path that -o names, or, with -config, the database DB of the file\n" +
			"to its own path. Ends with 3 when it is certain that there is no backup.",
		Flags: append(configFlags(),
			&cli.StringFlag{Name: "o", Usage: "write the database to `PATH`"},
			&cli.StringFlag{Name: "txid", Usage: "restore the state after transaction `N` (decimal, or 16 hexadecimal digits)"},
			&cli.StringFlag{Name: "timestamp", Usage: "restore the newest state that was committed at or before `TIME` (RFC 3339 with its zone, or how long ago: -10m, -1h30m)"},
			&cli.BoolFlag{Name: "force", Usage: "replace an existing database"},
			&cli.BoolFlag{Name: "if-db-not-exists", Usage: "do nothing, with exit code 0, when the database exists"},
			&cli.BoolFlag{Name: "if-replica-exists", Usage: "exit code 0 when it is certain that there is no backup"},
			&cli.IntFlag{Name: "parallelism", Value: 8, Usage: "requests at a time"},
			&cli.StringFlag{Name: "integrity-check", Value: checkQuick, Usage: "none, quick or full"},
			&cli.BoolFlag{Name: "json", Usage: "print the result as JSON"},
		),
		Action: func(c *cli.Context) error {
			plan, err := restorePlan(c)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return runRestore(ctx, c, plan)
		},
	}
}

// restoring is what a restore is asked to do.
type restoring struct {
	place   location
	options replica.RestoreOptions
}

func restorePlan(c *cli.Context) (restoring, error) {
	args, err := arguments(c, 1, 1)
	if err != nil {
		return restoring{}, err
	}
	p := restoring{options: replica.RestoreOptions{Parallelism: c.Int("parallelism")}}
	if p.options.TXID, p.options.Time, err = restoreWhen(c, time.Now()); err != nil {
		return p, err
	}
	if p.options.Check, err = integrityCheck(c.String("integrity-check")); err != nil {
		return p, err
	}
	if n := p.options.Parallelism; n < 1 || n > 256 {
		return p, usagef("-parallelism %d: use 1 to 256", n)
	}
	if c.Bool("force") {
		if c.Bool("if-db-not-exists") {
			return p, usagef("-force and -if-db-not-exists exclude each other")
		}
		p.options.Existing = replica.ReplaceExisting
	}
	p.place, p.options.Path, err = restoreEnds(c, args[0])
	return p, err
}

func runRestore(ctx context.Context, c *cli.Context, p restoring) error {
	out := &restoreOutput{stdout: c.App.Writer, stderr: c.App.ErrWriter, json: c.Bool("json")}
	if c.Bool("if-db-not-exists") && exists(p.options.Path) {
		return out.nothing(p, "the database exists")
	}
	log := slog.New(slog.NewTextHandler(c.App.ErrWriter, &slog.HandlerOptions{Level: slog.LevelWarn}))
	r, err := p.place.replica(ctx, log)
	if err != nil {
		return err
	}
	progress := newProgress(c.App.ErrWriter, "restoring")
	p.options.Progress = progress.update
	result, err := replica.Restore(ctx, r, p.options)
	progress.end()
	if err = p.place.doubt(err); errors.Is(err, replica.ErrNoBackup) && c.Bool("if-replica-exists") {
		return out.nothing(p, "there is no backup")
	}
	if errors.Is(err, replica.ErrTargetExists) {
		return fmt.Errorf("%w; -force replaces what is there", err)
	}
	if err != nil {
		return err
	}
	return errors.Join(notePosition(p.options.Path, result), out.done(p, result))
}

// restoreOptions are those of a restore without a user.
func restoreOptions(path string) replica.RestoreOptions {
	return replica.RestoreOptions{Path: path, Check: func(ctx context.Context, path string) error {
		return checkIntegrity(ctx, path, "quick_check")
	}}
}
