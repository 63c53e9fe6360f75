package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/quarantine"
	"github.com/tidemark-io/tidemark/replica"
)

func quarantineDiffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "show which rows a quarantined database has otherwise",
		ArgsUsage: "DB [ID]",
		Description: "Compares it with the last state that this node and the replica have in common, which is restored\n" +
			"from the replica for that, or with the database that -against names, such as the present one.\n" +
			"Lines with + are rows that were added here, - removed, ~ changed. Long values are cut.",
		Flags: append(configFlags(),
			&cli.StringFlag{Name: "against", Usage: "compare with the database `PATH`"},
			&cli.StringFlag{Name: "replica", Usage: "restore from `URL` instead of what the configuration says"},
			&cli.BoolFlag{Name: "json", Usage: "print a JSON object a line"},
		),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 2)
			if err != nil {
				return err
			}
			if c.IsSet("against") && c.IsSet("replica") {
				return usagef("-against and -replica exclude each other")
			}
			q, e, err := entryOf(args)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return runDiff(ctx, c, q, e)
		},
	}
}

func runDiff(ctx context.Context, c *cli.Context, q quarantined, e quarantine.Entry) (err error) {
	if e.Problem != "" {
		return fmt.Errorf("%s: %w: %s", e.ID, quarantine.ErrDamaged, e.Problem)
	}
	base := c.String("against")
	if base == "" {
		dir, err := os.MkdirTemp(Scratch{}.place(), "tidemark-diff-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		base = filepath.Join(dir, "base.db")
		if err := restoreBase(ctx, c, q, e, base); err != nil {
			return err
		}
	}
	out := bufio.NewWriter(c.App.Writer)
	seen := &attentive{Sink: quarantine.Text(out)}
	if c.Bool("json") {
		seen.Sink = quarantine.JSON(out)
	}
	err = e.Diff(ctx, base, seen)
	if err == nil && !seen.any && !c.Bool("json") {
		_, err = fmt.Fprintln(out, "nothing differs")
	}
	return errors.Join(err, out.Flush())
}

// attentive is a sink that tells whether there was anything for it.
type attentive struct {
	quarantine.Sink
	any bool
}

// Schema implements quarantine.Sink.
func (a *attentive) Schema(c quarantine.SchemaChange) error {
	a.any = true
	return a.Sink.Schema(c)
}

// Table implements quarantine.Sink.
func (a *attentive) Table(c quarantine.TableChange) error {
	a.any = true
	return a.Sink.Table(c)
}

// restoreBase makes the database with which an entry is compared: the last that
// both histories share.
func restoreBase(ctx context.Context, c *cli.Context, q quarantined, e quarantine.Entry, path string) error {
	if e.First == 1 {
		return os.WriteFile(path, nil, 0o600) // the whole history is of here
	}
	place, err := basePlace(c, q)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(c.App.ErrWriter, &slog.HandlerOptions{Level: slog.LevelWarn}))
	r, err := place.replica(ctx, log)
	if err != nil {
		return err
	}
	options := replica.RestoreOptions{Path: path}
	if e.First > 0 {
		options.TXID = e.First - 1
	} else {
		log.Warn("it is not known what both histories share; comparing with the newest state of the replica")
	}
	progress := newProgress(c.App.ErrWriter, "restoring")
	options.Progress = progress.update
	result, err := replica.Restore(ctx, r, options)
	progress.end()
	if err != nil {
		return fmt.Errorf("restore what to compare with: %w; or give a database with -against", place.doubt(err))
	}
	if e.Base.TXID > 0 && result.Pos != (ltx.Pos{TXID: e.Base.TXID, PostApplyChecksum: e.Base.Checksum}) {
		log.Warn("the state of the replica is not the one that was left", "txid", result.Pos.TXID,
			"checksum", result.Pos.PostApplyChecksum, "left", e.Base.Checksum)
	}
	return nil
}

// basePlace is where the replica of a database is.
func basePlace(c *cli.Context, q quarantined) (location, error) {
	if url := c.String("replica"); url != "" {
		d, err := singleDatabase(q.database, url)
		if err != nil {
			return location{}, err
		}
		return d.Replica.locate()
	}
	if path, there := configPath(c); !there {
		return location{}, usagef("there is no configuration file %s that tells the replica; give -config FILE, -replica URL or -against PATH", path)
	}
	cfg, err := loadConfig(c)
	if err != nil {
		return location{}, err
	}
	d, err := cfg.database(q.database)
	if err != nil {
		return location{}, err
	}
	return d.Replica.locate()
}
