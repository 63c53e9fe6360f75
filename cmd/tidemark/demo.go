package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/demo"
)

func demoCommand() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "show replication, a crash and a restore on a small catalog",
		Description: "Makes a catalog as DuckLake keeps it, commits to it from another process while the real\n" +
			"sidecar replicates it, kills the sidecar half way and starts it again, deletes the\n" +
			"database, restores it and compares. Ends with 0 only if both are equal.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "bucket", Usage: "replicate below `URL` instead of into the scratch directory; the objects stay there"},
			&cli.DurationFlag{Name: "duration", Value: 8 * time.Second, Usage: "how long to commit"},
			&cli.BoolFlag{Name: "keep", Usage: "keep the scratch directory, with catalog, log and replica"},
		},
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			if d := c.Duration("duration"); d < time.Second || d > time.Hour {
				return usagef("-duration %s: use 1s to 1h", d)
			}
			ctx, stop := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return runDemo(ctx, c)
		},
	}
}

// demonstration is one run of the demo.
type demonstration struct {
	dir     string // scratch
	program string // this binary
	catalog string
	bucket  string // URL of the replica
	length  time.Duration
	out     io.Writer

	elsewhere bool // the replica is not in dir
	keep      bool // leave dir where it is
}

func runDemo(ctx context.Context, c *cli.Context) (err error) {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	dir, err := os.MkdirTemp("", "tidemark-demo-")
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	d := &demonstration{
		dir: dir, program: program, catalog: filepath.Join(dir, "catalog.sqlite"),
		bucket: "file://" + filepath.Join(dir, "bucket"), length: c.Duration("duration"), out: c.App.Writer,
		keep: c.Bool("keep"),
	}
	defer func() { err = errors.Join(err, d.leave()) }()
	if base := c.String("bucket"); base != "" {
		d.elsewhere = true
		d.bucket = below(base, fmt.Sprintf("tidemark-demo-%d-%d", time.Now().Unix(), os.Getpid()))
	}
	if err := demo.Create(ctx, d.catalog); err != nil {
		return err
	}
	d.say("catalog   %s", d.catalog)
	d.say("replica   %s", withoutQuery(d.bucket))
	if err := d.replicateAndCrash(ctx); err != nil {
		return errors.Join(err, d.showLog())
	}
	return d.loseAndRestore(ctx)
}

func (d *demonstration) say(format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, format+"\n", args...)
}

// below adds an element to the path of a URL that may have a query.
func below(url, name string) string {
	path, query, ok := strings.Cut(url, "?")
	path = strings.TrimRight(path, "/") + "/" + name
	if ok {
		path += "?" + query
	}
	return path
}
