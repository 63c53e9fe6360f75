package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/socket"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "show what running sidecars have replicated",
		ArgsUsage: "[DB]",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
			&cli.StringFlag{Name: "socket", Usage: "ask the sidecar behind `PATH` instead of all of this user"},
		},
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 0, 1)
			if err != nil {
				return err
			}
			reports, err := askStatus(c.Context, c.String("socket"))
			if err != nil {
				return err
			}
			if len(args) == 1 {
				if reports, err = onlyDatabase(reports, args[0]); err != nil {
					return err
				}
			}
			if c.Bool("json") {
				return printJSON(c.App.Writer, reports)
			}
			return printStatus(c.App.Writer, reports)
		},
	}
}

// askStatus asks one sidecar, or all that can be found. One that ends between
// being found and being asked is passed over.
func askStatus(ctx context.Context, path string) ([]Report, error) {
	if path != "" {
		var r Report
		if err := socket.Get(ctx, path, "/status", &r); err != nil {
			return nil, fmt.Errorf("%w; is the sidecar running?", err)
		}
		return []Report{r}, nil
	}
	paths, err := socket.Find()
	if err != nil {
		return nil, err
	}
	var reports []Report
	var errs []error
	for _, path := range paths {
		var r Report
		if err := socket.Get(ctx, path, "/status", &r); err != nil {
			errs = append(errs, err)
			continue
		}
		reports = append(reports, r)
	}
	if len(reports) == 0 {
		return nil, errors.Join(append(errs,
			fmt.Errorf("no running sidecar found in %s; name its socket with -socket PATH", socket.DefaultDir()))...)
	}
	return reports, nil
}

func onlyDatabase(reports []Report, path string) ([]Report, error) {
	want, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	for _, r := range reports {
		for _, d := range r.Databases {
			if sameFile(d.Path, want) {
				r.Databases = []DatabaseReport{d}
				return []Report{r}, nil
			}
		}
	}
	return nil, fmt.Errorf("no running sidecar replicates %s", want)
}

func printStatus(w io.Writer, reports []Report) error {
	var aside uint64
	rows := "DATABASE\tREPLICA\tCAPTURED\tUPLOADED\tLAG\tSNAPSHOT\tFILES\tSTATE\tERROR\n"
	for _, r := range reports {
		if r.Lease != nil {
			if _, err := fmt.Fprintln(w, r.Lease); err != nil {
				return err
			}
		}
		for _, d := range r.Databases {
			rows += fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.Path, d.Replica,
				showTXID(d.Captured), showTXID(d.Uploaded), showLag(d.LagSeconds),
				d.Compaction.snapshot(), d.Compaction.files(), d.state(), orDash(d.trouble()))
			aside += d.Quarantined
		}
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(table, rows); err != nil {
		return err
	}
	if err := table.Flush(); err != nil || aside == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "%d quarantined: written here, but not on the replica; see tidemark quarantine list\n", aside)
	return err
}

// state is that of the table, with the commits that wait for somebody.
func (r DatabaseReport) state() string {
	if r.Quarantined > 0 {
		return fmt.Sprintf("%s, %d quarantined", r.State, r.Quarantined)
	}
	return r.State
}

func showTXID(p Position) string {
	if p.TXID == 0 {
		return "-"
	}
	return fmt.Sprint(p.TXID)
}

func showLag(seconds float64) string {
	if seconds == 0 {
		return "-"
	}
	lag := time.Duration(seconds * float64(time.Second))
	if lag > time.Minute {
		return lag.Round(time.Second).String()
	}
	return lag.Round(time.Millisecond).String()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
