package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/internal/scratch"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

func verifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "prove that a replica is whole, and equal to its database",
		ArgsUsage: "URL|DB",
		Description: "Reads every file: its checksum, that its pages lead from the state before it to the one it says,\n" +
			"in every level, and that nothing is missing. Ends with 1 when there is a fault.",
		Flags: append(configFlags(),
			&cli.StringFlag{Name: "against", Usage: "compare the newest state with the live database `DB`, page by page"},
			&cli.IntFlag{Name: "parallelism", Value: 8, Usage: "files read at a time"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			if n := c.Int("parallelism"); n < 1 || n > 256 {
				return usagef("-parallelism %d: use 1 to 256", n)
			}
			place, _, err := replicaOf(c, args[0])
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return runVerify(ctx, c, place)
		},
	}
}

func runVerify(ctx context.Context, c *cli.Context, place location) (err error) {
	r, err := place.replica(ctx, slog.New(slog.NewTextHandler(c.App.ErrWriter, nil)))
	if err != nil {
		return err
	}
	space, err := scratch.New(Scratch{}.place(), 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, space.Close()) }()
	sums, err := temporarySums()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sums.Close()) }()
	bar := newProgress(c.App.ErrWriter, "verifying")
	v, err := replica.Verify(ctx, r, replica.VerifyOptions{
		Scratch: space, Sums: sums, Parallelism: c.Int("parallelism"), Progress: bar.update,
	})
	bar.end()
	if err != nil {
		return place.doubt(err)
	}
	report := verifyReport(place, v)
	if path := c.String("against"); path != "" {
		if report.Against, err = compareLive(ctx, r, sums, path); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		err = printJSON(c.App.Writer, report)
	} else {
		err = report.print(c.App.Writer)
	}
	return errors.Join(err, report.verdict())
}

// temporarySums makes page sums in a file without a name, so that nothing is
// left of it.
func temporarySums() (*ltx.PageSums, error) {
	dir, err := os.MkdirTemp(Scratch{}.place(), "tidemark-verify-")
	if err != nil {
		return nil, err
	}
	sums, err := ltx.OpenPageSums(filepath.Join(dir, "sums"))
	return sums, errors.Join(err, os.RemoveAll(dir))
}

// VerifyReport is the JSON form of what verify found.
type VerifyReport struct {
	Replica string        `json:"replica"`
	Sound   bool          `json:"sound"`
	Files   int64         `json:"files"`
	Bytes   int64         `json:"bytes"`
	States  int           `json:"states"` // that can be restored
	First   Moment        `json:"first,omitzero"`
	Last    Moment        `json:"last,omitzero"`
	Proven  Position      `json:"proven,omitzero"`
	Faults  []FaultReport `json:"faults"`
	Notes   []string      `json:"notes,omitempty"`
	Against *LiveReport   `json:"against,omitempty"`
}

// FaultReport is one thing wrong with a replica.
type FaultReport struct {
	Key     string `json:"key,omitempty"` // empty: files are missing
	Min     uint64 `json:"min_txid"`
	Max     uint64 `json:"max_txid"`
	Problem string `json:"problem"`
	Advice  string `json:"advice"`
}

func verifyReport(place location, v replica.Verification) *VerifyReport {
	r := &VerifyReport{
		Replica: place.String(), Sound: len(v.Faults) == 0, Files: v.Files, Bytes: v.Bytes, States: v.States,
		First: moment(v.First), Last: moment(v.Last), Proven: position(v.Proven), Faults: []FaultReport{}, Notes: v.Notes,
	}
	for _, f := range v.Faults {
		r.Faults = append(r.Faults, FaultReport{f.Key, uint64(f.Min), uint64(f.Max), f.Problem, f.Advice})
	}
	return r
}

// verdict is the error that the command ends with.
func (r *VerifyReport) verdict() error {
	var errs []error
	switch n := len(r.Faults); {
	case n == 1:
		errs = append(errs, fmt.Errorf("%s has a fault", r.Replica))
	case n > 1:
		errs = append(errs, fmt.Errorf("%s has %d faults", r.Replica, n))
	}
	if r.Against != nil && !r.Against.Equal {
		errs = append(errs, fmt.Errorf("%s differs from %s", r.Against.Path, r.Replica))
	}
	return errors.Join(errs...)
}

func (r *VerifyReport) print(w io.Writer) error {
	text := fmt.Sprintf("%s: %d files, %s\n", r.Replica, r.Files, humanize.IBytes(uint64(r.Bytes)))
	if r.States > 0 {
		text += fmt.Sprintf("%d states can be restored, from transaction %d of %s to %d of %s\n", r.States,
			r.First.TXID, showTime(r.First.Time), r.Last.TXID, showTime(r.Last.Time))
	}
	for _, note := range r.Notes {
		text += "note: " + note + "\n"
	}
	for _, f := range r.Faults {
		subject := f.Key
		if subject != "" {
			subject += ": "
		}
		text += fmt.Sprintf("fault: %s%s\n       %s\n", subject, f.Problem, f.Advice)
	}
	if r.Sound {
		text += fmt.Sprintf("all files are sound and lead to transaction %d\n", r.Proven.TXID)
	}
	if r.Against != nil {
		text += r.Against.text()
	}
	_, err := io.WriteString(w, text)
	return err
}
