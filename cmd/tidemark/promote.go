package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/socket"
)

// longestMove is the longest that a change of roles may be waited for.
const longestMove = time.Hour

// leaseError carries the exit code that a node has for what went wrong.
type leaseError struct {
	message string
	code    int
}

func (e *leaseError) Error() string { return e.message }

func promoteCommand() *cli.Command {
	return &cli.Command{
		Name: "promote", Usage: "make the node of a running sidecar the primary", ArgsUsage: "[DB]",
		Description: "Asks the primary, through the bucket, to hand over, or takes over when it is gone, and waits until this\n" +
			"node is the primary. It works on a follower; on the primary it does nothing.",
		Flags: moveFlags(&cli.BoolFlag{
			Name: "accept-loss", Usage: "serve databases also where files that were confirmed are missing from the bucket",
		}),
		Action: func(c *cli.Context) error {
			query := url.Values{}
			if c.Bool("accept-loss") {
				query.Set("accept-loss", "1")
			}
			return move(c, "promote", query, "%s is the primary now, generation %d\n")
		},
	}
}

func stepDownCommand() *cli.Command {
	return &cli.Command{
		Name: "step-down", Usage: "have the primary of a running sidecar hand over", ArgsUsage: "[DB]",
		Description: "Stops the application, uploads the last commit and releases the lease, for any other node or for that of -to.\n" +
			"The node then follows and does not compete for a while. With -to it waits until a node has taken over, and\n" +
			"fails when that is another one.",
		Flags: moveFlags(&cli.StringFlag{Name: "to", Usage: "hand over to `NODE`, by its lease.node"}),
		Action: func(c *cli.Context) error {
			to := c.String("to")
			if to == "" {
				return move(c, "step-down", url.Values{}, "%s is not the primary any more, generation %d\n")
			}
			done := "%s has handed over to node " + strings.ReplaceAll(to, "%", "%%") + ", generation %d\n"
			return move(c, "step-down", url.Values{"to": {to}}, done)
		},
	}
}

func moveFlags(more ...cli.Flag) []cli.Flag {
	return orderFlags(append(more, &cli.DurationFlag{Name: "timeout", Usage: "give up after `TIME`", Value: time.Minute})...)
}

// move has a node change its role and prints the outcome.
func move(c *cli.Context, name string, query url.Values, done string) error {
	args, err := arguments(c, 0, 1)
	if err != nil {
		return err
	}
	timeout := c.Duration("timeout")
	if timeout <= 0 || timeout > longestMove {
		return usagef("-timeout %s: use more than 0s, %s at most", timeout, longestMove)
	}
	query.Set("timeout", timeout.String())
	path, err := findNode(c.Context, c.String("socket"), args)
	if err != nil {
		return err
	}
	var m moved
	err = socket.Post(c.Context, path, "/"+name+"?"+query.Encode(), func(value json.RawMessage) error {
		return json.Unmarshal(value, &m)
	})
	switch {
	case err != nil:
		return err
	case m.Role.Node == "":
		return fmt.Errorf("socket %s: the sidecar ended meanwhile", path)
	case m.Code != 0:
		err = &leaseError{message: fmt.Sprintf("%s: %s", name, m.Err), code: m.Code}
	}
	if c.Bool("json") {
		return errors.Join(printJSON(c.App.Writer, m.Role), err)
	}
	if err == nil {
		_, err = fmt.Fprintf(c.App.Writer, "node "+done, m.Role.Node, m.Role.Generation)
	}
	return err
}

// findNode returns the socket of the only sidecar with a lease, or of the one
// that has the database of args.
func findNode(ctx context.Context, path string, args []string) (string, error) {
	sockets, err := socketsFor(path)
	if err != nil {
		return "", err
	}
	var found []string
	var errs []error
	for _, s := range sockets {
		var r Report
		if err := socket.Get(ctx, s, "/status", &r); err != nil {
			errs = append(errs, err)
			continue
		}
		if r.Lease == nil {
			errs = append(errs, fmt.Errorf("socket %s: that sidecar has no lease; set lease.enabled in its configuration", s))
			continue
		}
		if ok, err := r.has(args); err != nil || ok {
			found = append(found, s)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", usagef("%d sidecars with a lease are running; name a database, or one of their sockets with -socket PATH", len(found))
	}
	return "", errors.Join(append(errs, cmp.Or(notThere(args), errors.New("no running sidecar with a lease was found")))...)
}

func notThere(args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("no running sidecar with a lease has %s", args[0])
}

// has tells whether the report is about the database of args, if there is one.
func (r Report) has(args []string) (bool, error) {
	if len(args) == 0 {
		return true, nil
	}
	path, err := filepath.Abs(args[0])
	return slices.ContainsFunc(r.Databases, func(d DatabaseReport) bool { return sameFile(d.Path, path) }), err
}
