package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/demo"
)

const demoWriterName = "demo-writer"

// demoWriterCommand is the writer of the demo, a process of its own as an
// application is.
func demoWriterCommand() *cli.Command {
	return &cli.Command{
		Name: demoWriterName, Hidden: true, ArgsUsage: "DB",
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return demo.Write(ctx, args[0], 5*time.Millisecond, func(n int64) {
				_, _ = fmt.Fprintln(c.App.Writer, n)
			})
		},
	}
}

func (d *demonstration) logPath() string { return filepath.Join(d.dir, "sidecar.log") }

func (d *demonstration) startSidecar() (*demoProcess, error) {
	log, err := os.OpenFile(d.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(d.program, "replicate", d.catalog, d.bucket)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+d.dir)
	cmd.Stdout, cmd.Stderr = log, log
	return startDemoProcess(cmd, nil)
}

func (d *demonstration) startWriter() (*demoProcess, error) {
	cmd := exec.Command(d.program, demoWriterName, d.catalog)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return startDemoProcess(cmd, out)
}

// startDemoProcess starts cmd and, where it is a writer, follows the numbers
// that it prints.
func startDemoProcess(cmd *exec.Cmd, numbers io.Reader) (*demoProcess, error) {
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start demo process: %w", err)
	}
	p := &demoProcess{process: cmd.Process, ended: make(chan struct{})}
	p.group.Go(func() error {
		defer close(p.ended)
		if numbers != nil {
			p.follow(numbers)
		}
		return cmd.Wait()
	})
	return p, nil
}

func (p *demoProcess) follow(numbers io.Reader) {
	lines := bufio.NewScanner(numbers)
	for lines.Scan() {
		if n, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
			p.commits.Store(n)
		}
	}
}

// showLog prints the end of what the sidecar logged.
func (d *demonstration) showLog() error {
	text, err := os.ReadFile(d.logPath())
	if err != nil {
		return err
	}
	if cut := len(text) - 4096; cut > 0 {
		text = text[cut:]
	}
	d.say("log of the sidecar:\n%s", text)
	return nil
}
