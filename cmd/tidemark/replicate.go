package main

import (
	"context"
	"errors"
	"log/slog"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"
)

func replicateCommand() *cli.Command {
	return &cli.Command{
		Name:      "replicate",
		Usage:     "replicate databases to a bucket until stopped",
		ArgsUsage: "[DB URL]",
		Description: "Replicates the database DB to URL, or what a configuration file lists.\n" +
			"URL is file:///abs/dir, the path of a directory, or s3://bucket/prefix?endpoint=...&region=...",
		Flags: append(configFlags(),
			&cli.BoolFlag{Name: "once", Usage: "upload what is committed now and exit"},
			&cli.StringFlag{Name: "exec", Usage: "run `COMMAND` once the databases are on their replicas; exit with its code"},
			&cli.BoolFlag{Name: "restore-if-missing", Usage: "restore databases that do not exist first (implied by -exec)"},
			&cli.StringFlag{Name: "log-level", Usage: "debug, info, warn or error; without it $" + levelVariable},
		),
		Action: func(c *cli.Context) error {
			cfg, err := replicateConfig(c)
			if err != nil {
				return err
			}
			return replicate(c, cfg)
		},
	}
}

// replicateConfig joins arguments, file and flags.
func replicateConfig(c *cli.Context) (Config, error) {
	args, err := arguments(c, 0, 2)
	if err != nil {
		return Config{}, err
	}
	if len(args) == 1 {
		return Config{}, usagef("the URL of the replica is missing: tidemark replicate [flags] %s URL", args[0])
	}
	if len(args) == 2 && explicitConfig(c) {
		return Config{}, usagef("DB and URL are given as well as -config; give one of them")
	}
	var cfg Config
	if len(args) == 2 {
		cfg, err = singleConfig(args[0], args[1])
	} else {
		cfg, err = loadConfig(c)
	}
	if err != nil {
		return Config{}, err
	}
	return cfg, applyReplicateFlags(c, &cfg)
}

func applyReplicateFlags(c *cli.Context, cfg *Config) error {
	if c.IsSet("exec") {
		if cfg.Exec = c.String("exec"); cfg.Exec == "" {
			return usagef("-exec is empty; give the command to run")
		}
	}
	if level := c.String("log-level"); level != "" {
		cfg.Logging.Level = level
	}
	if _, err := cfg.command(); err != nil {
		return usagef("-%v", err)
	}
	if err := cfg.Logging.Validate(); err != nil {
		return usagef("-log-level: %v", err)
	}
	if cfg.HA.Lease.Enabled && c.Bool("once") {
		return usagef("-once and a lease exclude each other: who holds the lease replicates until it is stopped")
	}
	if cfg.Exec != "" && c.Bool("once") {
		return usagef("-once and a command to run exclude each other")
	}
	for i := range cfg.Databases {
		if cfg.Databases[i].Dir == "" && (c.Bool("restore-if-missing") || cfg.Exec != "") {
			cfg.Databases[i].RestoreIfMissing = true
		}
	}
	return nil
}

func replicate(c *cli.Context, cfg Config) error {
	var levelErr error
	if c.String("log-level") == "" {
		levelErr = cfg.Logging.fromEnvironment()
	}
	log := newLogger(cfg.Logging, c.App.Writer, c.App.ErrWriter)
	if levelErr != nil {
		log.Warn("the level in the environment is not used", "error", levelErr)
	}
	if cfg.HA.Lease.Enabled {
		return replicateUnderLease(c, cfg, log)
	}
	s, err := newSidecar(c.Context, cfg, newBuckets(newMetrics(cfg.ownSeries()), log), log)
	if err != nil {
		return err
	}
	others := newOtherLeases(cfg, s.buckets, log)
	if err := others.Ask(c.Context); err != nil {
		return errors.Join(err, s.Close())
	}
	if c.Bool("once") {
		ctx, stop := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		return s.Once(ctx, cfg.ShutdownTimeout)
	}
	command, err := cfg.command()
	if err != nil {
		return err
	}
	asked, err := listen(c.Context, cfg, log)
	if err != nil {
		return err
	}
	return (&supervisor{
		sidecar: s, command: command, timeout: cfg.ShutdownTimeout,
		started: func() { logVersions(log) },
		serve: func(ctx context.Context) error {
			group, ctx := errgroup.WithContext(ctx)
			group.Go(func() error { return others.Run(ctx) })
			group.Go(func() error { return s.serve(ctx, asked) })
			return group.Wait()
		},
	}).Run(c.Context)
}

func replicateUnderLease(c *cli.Context, cfg Config, log *slog.Logger) error {
	n, err := newNode(c.Context, cfg, log)
	if err != nil {
		return err
	}
	asked, err := listen(c.Context, cfg, log)
	if err != nil {
		return errors.Join(err, n.Close())
	}
	return n.Run(c.Context, asked)
}

func logVersions(log *slog.Logger) {
	v := currentVersions()
	log.Info("tidemark started", "version", v.Tidemark, "sqlite", v.SQLite)
}
