package main

import (
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/quarantine"
)

func quarantineExportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "write a quarantined database to a file of its own",
		ArgsUsage: "DB [ID]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "o", Usage: "write it to `PATH`, where nothing may be"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		},
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 2)
			if err != nil {
				return err
			}
			out := c.String("o")
			if out == "" {
				return usagef("-o PATH is missing: where to write the database")
			}
			q, e, err := entryOf(args)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if err := e.Export(ctx, out); err != nil {
				return err
			}
			if c.Bool("json") {
				return printJSON(c.App.Writer, struct {
					Output string      `json:"output"`
					Entry  EntryReport `json:"entry"`
				}{out, entryReport(q, e)})
			}
			_, err = fmt.Fprintf(c.App.Writer, "%s holds %s with %s that were not uploaded\n", out, q.database, transactionsOf(e.Manifest))
			return err
		},
	}
}

// transactionsOf names the transactions that were set aside.
func transactionsOf(m quarantine.Manifest) string {
	if m.First == 0 {
		return "transactions, it is not known which,"
	}
	return fmt.Sprintf("its transactions %d to %d", m.First, m.Last)
}

func quarantineAckCommand() *cli.Command {
	return &cli.Command{
		Name:      "ack",
		Usage:     "acknowledge what was set aside, so that it is not reported any more",
		ArgsUsage: "DB [ID]",
		Description: "It is kept all the same until it is removed with -remove, which cannot be undone: then at most the\n" +
			"copy in the bucket is left.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "remove", Usage: "remove it from the disk, too"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		},
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 2)
			if err != nil {
				return err
			}
			q, e, err := entryOf(args)
			if err != nil {
				return err
			}
			return acknowledge(c, q, e)
		},
	}
}

// AckReport is what ack did.
type AckReport struct {
	Database string `json:"database"`
	ID       string `json:"id"`
	Removed  bool   `json:"removed"`
}

func acknowledge(c *cli.Context, q quarantined, e quarantine.Entry) error {
	r := AckReport{Database: q.database, ID: e.ID, Removed: c.Bool("remove")}
	err := quarantine.Ack(q.dir, e.ID)
	if err == nil && r.Removed {
		err = quarantine.Remove(q.dir, e.ID)
	}
	if errors.Is(err, quarantine.ErrUnknown) {
		err = fmt.Errorf("%w any more", err)
	}
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(c.App.Writer, r)
	}
	done := "acknowledged"
	if r.Removed {
		done = "removed"
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s is %s\n", e.ID, done)
	return err
}
