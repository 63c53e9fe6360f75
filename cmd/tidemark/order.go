package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/socket"
)

func orderFlags(more ...cli.Flag) []cli.Flag {
	return append(more,
		&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		&cli.StringFlag{Name: "socket", Usage: "ask the sidecar behind `PATH` instead of all of this user"})
}

func snapshotCommand() *cli.Command {
	return &cli.Command{
		Name: "snapshot", Usage: "have a running sidecar make a snapshot now", ArgsUsage: "DB", Flags: orderFlags(),
		Action: func(c *cli.Context) error {
			a, err := order(c, "snapshot", url.Values{})
			if err != nil || c.Bool("json") {
				return printed(c, a.Snapshot, err)
			}
			text := "nothing changed since the newest snapshot, TXID %d, %s\n"
			if a.Snapshot.Made {
				text = "snapshot at TXID %d, %s\n"
			}
			_, err = fmt.Fprintf(c.App.Writer, text, a.Snapshot.TXID, humanize.IBytes(uint64(max(0, a.Snapshot.Size))))
			return err
		},
	}
}

func compactCommand() *cli.Command {
	return &cli.Command{
		Name: "compact", Usage: "have a running sidecar make all merged files that are due", ArgsUsage: "DB", Flags: orderFlags(),
		Action: func(c *cli.Context) error {
			a, err := order(c, "compact", url.Values{})
			if err != nil || c.Bool("json") {
				return printed(c, a.Compact, err)
			}
			r := &CompactionReport{Levels: a.Compact.Levels}
			_, err = fmt.Fprintf(c.App.Writer, "%d files made; files by level: %s\n", a.Compact.Merged, r.files())
			return err
		},
	}
}

func syncCommand() *cli.Command {
	return &cli.Command{
		Name: "sync", Usage: "have a running sidecar upload what is committed now", ArgsUsage: "DB",
		Description: "Captures what is committed and has it uploaded without a pause. With -wait it ends when that is\n" +
			"proven to be on the replica, or fails at the end of -timeout and says how far it got.",
		Flags: orderFlags(
			&cli.BoolFlag{Name: "wait", Usage: "until all is on the replica"},
			&cli.DurationFlag{Name: "timeout", Usage: "give up after `TIME`", Value: 10 * time.Second},
		),
		Action: func(c *cli.Context) error {
			timeout := c.Duration("timeout")
			if timeout <= 0 || timeout > longestSync {
				return usagef("-timeout %s: use more than 0s, %s at most", timeout, longestSync)
			}
			query := url.Values{"timeout": {timeout.String()}}
			if c.Bool("wait") {
				query.Set("wait", "1")
			}
			a, err := order(c, "sync", query)
			switch {
			case c.Bool("json") || a.Sync == nil:
				return printed(c, a.Sync, err)
			case err != nil:
				return fmt.Errorf("TXID %d is on the replica, %s captured: %w", a.Sync.Uploaded, orNothing(a.Sync.Captured), err)
			case c.Bool("wait"):
				_, err = fmt.Fprintf(c.App.Writer, "TXID %d is on the replica\n", a.Sync.Uploaded)
			default:
				_, err = fmt.Fprintf(c.App.Writer, "TXID %d is captured, TXID %d is on the replica\n", a.Sync.Captured, a.Sync.Uploaded)
			}
			return err
		},
	}
}

func orNothing(txid uint64) string {
	if txid == 0 {
		return "nothing"
	}
	return fmt.Sprintf("TXID %d", txid)
}

// printed prints v as JSON, if there is one, and returns err.
func printed[T any](c *cli.Context, v *T, err error) error {
	if v == nil || !c.Bool("json") {
		return err
	}
	return errors.Join(printJSON(c.App.Writer, v), err)
}

// order has the sidecar do something that replicates the database of the
// argument. Lines about progress go to standard error.
func order(c *cli.Context, name string, query url.Values) (answer, error) {
	args, err := arguments(c, 1, 1)
	if err != nil {
		return answer{}, err
	}
	path, err := filepath.Abs(args[0])
	if err != nil {
		return answer{}, err
	}
	query.Set("db", path)
	sockets, err := socketsFor(c.String("socket"))
	if err != nil {
		return answer{}, err
	}
	var errs []error
	for _, s := range sockets {
		a, err := postOrder(c.Context, s, "/"+name+"?"+query.Encode(), c)
		if err == nil || a != (answer{}) {
			return a, err
		}
		if !errors.Is(err, socket.ErrUnknown) {
			errs = append(errs, err)
		}
	}
	return answer{}, errors.Join(append(errs, fmt.Errorf("no running sidecar replicates %s", path))...)
}

func socketsFor(path string) ([]string, error) {
	if path != "" {
		return []string{path}, nil
	}
	return socket.Find()
}

func postOrder(ctx context.Context, path, resource string, c *cli.Context) (last answer, err error) {
	shown := ""
	err = socket.Post(ctx, path, resource, func(value json.RawMessage) error {
		last = answer{}
		if err := json.Unmarshal(value, &last); err != nil {
			return fmt.Errorf("socket %s: decode answer: %w", path, err)
		}
		if last.Progress == "" || last.Progress == shown || c.Bool("json") {
			return nil
		}
		shown = last.Progress
		_, err := fmt.Fprintln(c.App.ErrWriter, shown)
		return err
	})
	switch {
	case err != nil:
		return answer{}, err
	case last.Error != "":
		return last, errors.New(last.Error)
	case last.Progress != "":
		return last, fmt.Errorf("socket %s: the sidecar ended meanwhile", path)
	}
	return last, nil
}
