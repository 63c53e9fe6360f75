package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

func ltxCommand() *cli.Command {
	return &cli.Command{
		Name:      "ltx",
		Usage:     "list the files of a replica",
		ArgsUsage: "URL|DB",
		Description: "Lists level, first and last transaction, size and time of each file. The time is when it was\n" +
			"uploaded; with -times, when its last transaction was committed, which takes a request for each.",
		Flags: append(configFlags(),
			&cli.IntFlag{Name: "level", Value: -1, Usage: "only the files of level `N`, 0 to 9", DefaultText: "all"},
			&cli.BoolFlag{Name: "times", Usage: "read from each file when its last transaction was committed"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			level := c.Int("level")
			if c.IsSet("level") && (level < 0 || level > ltx.LevelSnapshot) {
				return usagef("-level %d: use 0 to %d", level, ltx.LevelSnapshot)
			}
			place, _, err := replicaOf(c, args[0])
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return listFiles(ctx, c, place, level)
		},
	}
}

// FileReport is a file of a replica.
type FileReport struct {
	Level int       `json:"level"`
	Min   uint64    `json:"min_txid"`
	Max   uint64    `json:"max_txid"`
	Size  int64     `json:"size"`
	Time  time.Time `json:"time,omitzero"` // of the upload, or of the last commit; zero: the file is damaged
	Key   string    `json:"key"`
}

func listFiles(ctx context.Context, c *cli.Context, place location, level int) error {
	r, err := place.replica(ctx, slog.New(slog.NewTextHandler(c.App.ErrWriter, nil)))
	if err != nil {
		return err
	}
	files, err := r.Inventory(ctx)
	if err == nil && len(files) == 0 {
		err = place.doubt(fmt.Errorf("%s: %w", place, replica.ErrNoBackup))
	}
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f ltx.FileInfo) bool { return level >= 0 && f.Level != level })
	reports := make([]FileReport, len(files))
	for i, f := range files {
		reports[i] = FileReport{f.Level, uint64(f.Min), uint64(f.Max), f.Size, f.ModTime, r.Key(f)}
	}
	if c.Bool("times") {
		times, err := r.Times(ctx, files)
		if err != nil {
			return err
		}
		for i := range reports {
			reports[i].Time = times[i]
		}
	}
	if c.Bool("json") {
		return printJSON(c.App.Writer, reports)
	}
	return printFiles(c.App.Writer, reports)
}

func printFiles(w io.Writer, files []FileReport) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(table, "LEVEL\tFIRST\tLAST\tSIZE\tTIME\tKEY"); err != nil {
		return err
	}
	for _, f := range files {
		at := "-"
		if !f.Time.IsZero() {
			at = showTime(f.Time)
		}
		if _, err := fmt.Fprintf(table, "%d\t%d\t%d\t%s\t%s\t%s\n",
			f.Level, f.Min, f.Max, humanize.IBytes(uint64(f.Size)), at, f.Key); err != nil {
			return err
		}
	}
	return table.Flush()
}
