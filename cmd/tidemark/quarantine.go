package main

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/quarantine"
)

func quarantineCommand() *cli.Command {
	return &cli.Command{
		Name:  "quarantine",
		Usage: "commits that could not be uploaded and were set aside",
		Description: "When another node took over before commits of this one were uploaded, they cannot become part of\n" +
			"the replica any more. They are kept beside the database, with a copy of all of it, until somebody\n" +
			"has acknowledged them.",
		Subcommands: []*cli.Command{quarantineListCommand(), quarantineDiffCommand(), quarantineExportCommand(), quarantineAckCommand()},
	}
}

func quarantineListCommand() *cli.Command {
	return &cli.Command{
		Name:        "list",
		Usage:       "list what was set aside",
		ArgsUsage:   "[DB]",
		Description: "Of one database, or of all that the configuration lists by path.",
		Flags:       append(configFlags(), &cli.BoolFlag{Name: "json", Usage: "print JSON, with the manifest of each entry"}),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 0, 1)
			if err != nil {
				return err
			}
			dirs, err := quarantinesOf(c, args)
			if err != nil {
				return err
			}
			reports := []EntryReport{}
			for _, d := range dirs {
				entries, err := quarantine.List(d.dir)
				if err != nil {
					return err
				}
				for _, e := range entries {
					reports = append(reports, entryReport(d, e))
				}
			}
			if c.Bool("json") {
				return printJSON(c.App.Writer, reports)
			}
			return printEntries(c.App.Writer, reports)
		},
	}
}

// EntryReport is an entry of a quarantine.
type EntryReport struct {
	Database     string               `json:"database"`
	ID           string               `json:"id"`
	Path         string               `json:"path"`
	Transactions uint64               `json:"transactions,omitempty"` // 0: it is damaged
	Bytes        int64                `json:"bytes,omitempty"`
	Acknowledged time.Time            `json:"acknowledged_at,omitzero"`
	Uploaded     string               `json:"uploaded_to,omitempty"`
	Problem      string               `json:"problem,omitempty"`
	Manifest     *quarantine.Manifest `json:"manifest,omitempty"`
}

func entryReport(d quarantined, e quarantine.Entry) EntryReport {
	r := EntryReport{Database: d.database, ID: e.ID, Path: e.Path, Acknowledged: e.Acknowledged, Uploaded: e.Uploaded.URL, Problem: e.Problem}
	if e.Problem != "" {
		return r
	}
	r.Manifest, r.Transactions = &e.Manifest, e.Transactions()
	for _, f := range e.Files {
		r.Bytes += f.Size
	}
	return r
}

func (r EntryReport) state() string {
	state := "open"
	if !r.Acknowledged.IsZero() {
		state = "acknowledged"
	}
	if r.Uploaded != "" {
		state += ", uploaded"
	}
	return state
}

func printEntries(w io.Writer, entries []EntryReport) error {
	if len(entries) == 0 {
		_, err := fmt.Fprintln(w, "nothing is set aside")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(table, "DATABASE\tID\tTIME\tTRANSACTIONS\tSIZE\tNODE\tSTATE"); err != nil {
		return err
	}
	for _, e := range entries {
		line := fmt.Sprintf("%s\t%s\t-\t-\t-\t-\t%s, damaged: %s", e.Database, e.ID, e.state(), e.Problem)
		if m := e.Manifest; m != nil {
			transactions := fmt.Sprint(e.Transactions)
			if m.First == 0 {
				transactions = "unknown"
			}
			line = fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s", e.Database, e.ID, showTime(m.MadeAt), transactions,
				humanize.IBytes(uint64(e.Bytes)), cmp.Or(m.Node, "-"), e.state())
		}
		if _, err := fmt.Fprintln(table, line); err != nil {
			return err
		}
	}
	return table.Flush()
}
