package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/s3"
	"github.com/tidemark-io/tidemark/storage"
)

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name:      "doctor",
		Usage:     "find out whether a lease can be kept in a bucket",
		ArgsUsage: "[URL]",
		Description: "Writes and removes some small objects below the URL, or where the configuration keeps the lease, and\n" +
			"sees whether the service keeps its word on conditional writes, also when many race. Ends with 1 and\n" +
			"the name of the check that failed: then there must be one node only.",
		Flags: append(configFlags(), &cli.BoolFlag{Name: "json", Usage: "print JSON"}),
		Action: func(c *cli.Context) error {
			place, err := leaseArgument(c)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return runDoctor(ctx, c, place)
		},
	}
}

// DoctorReport is what doctor found.
type DoctorReport struct {
	URL        string        `json:"url"`
	Fit        bool          `json:"fit"`
	Passed     []CheckReport `json:"passed"`
	ClockAhead string        `json:"clock_ahead,omitempty"` // of the service's, where it is told and differs
	Error      string        `json:"error,omitempty"`
}

// CheckReport is a check that the service passed.
type CheckReport struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

func runDoctor(ctx context.Context, c *cli.Context, place location) error {
	if err := place.mayMake(); err != nil {
		return err
	}
	b, err := place.openLease(ctx)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(c.App.ErrWriter, &slog.HandlerOptions{Level: slog.LevelWarn}))
	report, err := examine(ctx, b, place, log)
	if c.Bool("json") {
		return errors.Join(printJSON(c.App.Writer, report), err)
	}
	return errors.Join(report.print(c.App.Writer), err)
}

// examine probes a bucket. What fails is in the report, and an error.
func examine(ctx context.Context, b storage.Bucket, place location, log *slog.Logger) (DoctorReport, error) {
	found, err := s3.Probe(ctx, b, log)
	return doctorReport(place, found, err), err
}

func doctorReport(place location, found s3.ProbeResult, err error) DoctorReport {
	r := DoctorReport{URL: place.String(), Fit: err == nil, Passed: []CheckReport{}}
	for _, check := range found.Checks {
		r.Passed = append(r.Passed, CheckReport{check.Name, check.Took.Seconds()})
	}
	if found.Skew != 0 {
		r.ClockAhead = (-found.Skew).String()
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

func (r DoctorReport) print(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", r.URL)
	for _, check := range r.Passed {
		fmt.Fprintf(&text, "ok  %-28s %.2fs\n", check.Name, check.Seconds)
	}
	if r.ClockAhead != "" {
		fmt.Fprintf(&text, "the clock of this machine is ahead of the service's by %s\n", r.ClockAhead)
	}
	if r.Fit {
		fmt.Fprintln(&text, "a lease can be kept here")
	}
	_, err := io.WriteString(w, text.String())
	return err
}
