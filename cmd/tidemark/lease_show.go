package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/leaser"
	"github.com/tidemark-io/tidemark/storage"
)

// errNoLease is wrapped where it is certain that nobody ever had the lease.
var errNoLease = errors.New("there is no lease")

func leaseCommand() *cli.Command {
	return &cli.Command{
		Name:        "lease",
		Usage:       "show or break the lease of the primary",
		Subcommands: []*cli.Command{leaseShowCommand(), leaseBreakCommand()},
	}
}

func leaseShowCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "show who has the lease",
		ArgsUsage: "[URL]",
		Description: "Reads lock.json below the URL, or where the configuration keeps it. Times are those of the holder's\n" +
			"clock; other nodes never decide by them. Ends with 3 when nobody has ever had the lease.",
		Flags: append(configFlags(), &cli.BoolFlag{Name: "json", Usage: "print JSON"}),
		Action: func(c *cli.Context) error {
			place, err := leaseArgument(c)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			b, err := place.openLease(ctx)
			if err != nil {
				return err
			}
			record, _, err := readLease(ctx, b, place)
			if err != nil {
				return err
			}
			report := leaseReport(place, record)
			if c.Bool("json") {
				return printJSON(c.App.Writer, report)
			}
			return report.print(c.App.Writer, time.Now())
		},
	}
}

// readLease returns the lock and its ETag.
func readLease(ctx context.Context, b storage.Bucket, place location) (leaser.Record, string, error) {
	record, etag, err := leaser.Read(ctx, b)
	if errors.Is(err, storage.ErrNotFound) {
		if err := place.mayMake(); err != nil {
			return record, "", err // its absence proves nothing
		}
		err = fmt.Errorf("%s: %w", place, errNoLease)
	}
	return record, etag, err
}

// LeaseReport is a lease as people see it.
type LeaseReport struct {
	URL        string                 `json:"url"`
	Owner      string                 `json:"owner"`
	Generation uint64                 `json:"generation"`
	State      string                 `json:"state"`
	Renewed    time.Time              `json:"renewed_at,omitzero"`
	Expires    time.Time              `json:"expires_at,omitzero"`
	Advertise  string                 `json:"advertise,omitempty"`
	Successor  string                 `json:"successor,omitempty"`
	Request    string                 `json:"request,omitempty"` // node that asks for a hand-over
	Heads      map[string]leaser.Head `json:"heads,omitempty"`   // by database; the only one has no name
}

func leaseReport(place location, r leaser.Record) LeaseReport {
	report := LeaseReport{
		URL: place.String() + "/" + leaser.Key, Owner: r.Owner, Generation: r.Generation, State: string(leaser.Held), Expires: r.ExpiresAt,
		Advertise: r.Advertise, Successor: r.Successor, Request: r.Request, Heads: r.AllHeads(),
	}
	if r.State != "" {
		report.State = string(r.State)
	}
	if r.TTL() > 0 && !r.ExpiresAt.IsZero() {
		report.Renewed = r.ExpiresAt.Add(-r.TTL())
	}
	return report
}

// node is the name of the node that an owner begins with.
func (r LeaseReport) node() string {
	name, _, _ := strings.Cut(r.Owner, "/")
	return name
}

func (r LeaseReport) print(w io.Writer, now time.Time) error {
	var text strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&text, "%-11s %s\n", name, oneLine(value))
		}
	}
	line("lease", r.URL)
	line("owner", r.Owner)
	line("generation", fmt.Sprint(r.Generation))
	line("state", r.State)
	if !r.Renewed.IsZero() {
		line("renewed", showTime(r.Renewed))
	}
	if !r.Expires.IsZero() {
		line("expires", showTime(r.Expires)+", "+humanize.RelTime(r.Expires, now, "ago", "from now"))
	}
	line("address", r.Advertise)
	line("successor", r.Successor)
	line("asked for", r.Request)
	_, err := io.WriteString(w, text.String())
	return err
}

// oneLine is a text that others wrote, without what would break or garble a
// line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
