package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/leaser"
	"github.com/tidemark-io/tidemark/storage"
)

func leaseBreakCommand() *cli.Command {
	return &cli.Command{
		Name:      "break",
		Usage:     "release the lease of a node that is gone for good",
		ArgsUsage: "[URL]",
		Description: "Writes the lock as released, so that another node becomes the primary at once instead of waiting\n" +
			"until the lease is over. Asks for the owner's name before.",
		Flags: append(configFlags(),
			&cli.StringFlag{Name: "yes-break", Usage: "do not ask: break the lease if it is that of `OWNER`"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		),
		Action: func(c *cli.Context) error {
			place, err := leaseArgument(c)
			if err != nil {
				return err
			}
			return breakLease(c.Context, c, place) // a signal ends it also while it asks
		},
	}
}

// BreakReport is what break did.
type BreakReport struct {
	LeaseReport
	Broken bool `json:"broken"` // false: it was released already
}

func breakLease(ctx context.Context, c *cli.Context, place location) error {
	b, err := place.openLease(ctx)
	if err != nil {
		return err
	}
	record, etag, err := readLease(ctx, b, place)
	if errors.Is(err, leaser.ErrUnreadable) {
		record = leaser.Record{Owner: unreadableOwner}
	} else if err != nil {
		return err
	}
	report := BreakReport{LeaseReport: leaseReport(place, record), Broken: record.State != leaser.Released}
	if report.Broken {
		if err := consent(c, report.LeaseReport); err != nil {
			return err
		}
		err := leaser.Break(ctx, b, etag, operator())
		if errors.Is(err, storage.ErrPrecondition) {
			return fmt.Errorf("%w: somebody renewed or took it meanwhile, so a holder is alive; look with tidemark lease show", err)
		}
		if err != nil {
			return fmt.Errorf("%w; look with tidemark lease show whether it is released", err)
		}
	}
	if c.Bool("json") {
		return printJSON(c.App.Writer, report)
	}
	text := "the lease of %s, generation %d, is released\n"
	if !report.Broken {
		text = "the lease of %s, generation %d, was released already\n"
	}
	_, err = fmt.Fprintf(c.App.Writer, text, oneLine(report.Owner), report.Generation)
	return err
}

// unreadableOwner is typed for a lock that cannot be read.
const unreadableOwner = "unreadable"

// consent wants the owner's name: with or without what follows the slash.
func consent(c *cli.Context, r LeaseReport) error {
	name := c.String("yes-break")
	if !c.IsSet("yes-break") {
		if err := explainBreak(c.App.ErrWriter, r); err != nil {
			return err
		}
		var err error
		if name, err = bufio.NewReader(c.App.Reader).ReadString('\n'); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the answer: %w", err)
		}
		name = strings.TrimSpace(name)
	}
	if name == "" || name != r.Owner && name != r.node() {
		return usagef("%q is not the owner of the lease, which is %q; nothing was changed", name, r.Owner)
	}
	return nil
}

func explainBreak(w io.Writer, r LeaseReport) error {
	text := "%[1]s is held by %[2]s, generation %[3]d.\n" +
		"Breaking it lets another node become the primary at once. If %[2]s is alive, both let their\n" +
		"applications write until it notices, for up to a renewal. The replica cannot be harmed by that, but\n" +
		"what %[2]s commits and cannot upload any more is set aside (tidemark quarantine).\n" +
		"If it can be reached, have it step down instead. If it is dead, another node takes over by itself when\n" +
		"the lease is over.\n" +
		"To break the lease, type the name of its owner: "
	_, err := fmt.Fprintf(w, text, r.URL, oneLine(r.Owner), r.Generation)
	return err
}

// operator names who breaks a lease.
func operator() string {
	name := "somebody"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}
