package testdb

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
)

// writerArg is the first argument of a test binary that is to be a writer.
const writerArg = "testdb-writer"

// RunWriter makes this process a writer and ends it if it was started by
// StartWriter. TestMain calls it first.
func RunWriter() {
	if len(os.Args) < 2 || os.Args[1] != writerArg {
		return
	}
	if err := write(os.Args[2:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "writer:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func write(args []string, stop io.Reader, out io.Writer) (err error) {
	flags := flag.NewFlagSet(writerArg, flag.ContinueOnError)
	path := flags.String("db", "", "database")
	load := flags.String("load", "{}", "load as JSON")
	alone := flags.Bool("alone", false, "stop at SIGTERM and not with the standard input")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var l Load
	if err := json.Unmarshal([]byte(*load), &l); err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if !*alone {
		// The writer never outlives the test: its standard input ends with it.
		context.AfterFunc(closed(stop), cancel)
	}
	db, err := connect(*path, "rwc")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	w, err := NewWriter(ctx, db, l)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	sum, err := w.Run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(sum)
}

// WriterProcess is a writer in a process of its own.
type WriterProcess struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	done bool
}

// StartWriter starts this test binary as a writer and returns once it has the
// database open. It is stopped when the test ends, if not before.
func StartWriter(t testing.TB, path string, load Load) *WriterProcess {
	t.Helper()
	w, err := startWriter(path, load)
	if err != nil {
		t.Fatalf("start writer: %v", err)
	}
	t.Cleanup(func() {
		if _, err := w.finish(); err != nil {
			t.Errorf("writer: %v", err)
		}
	})
	return w
}

// WriterCommand returns a command that runs this test binary as a writer. With
// "-alone" added it ends at SIGTERM only, not with its standard input.
func WriterCommand(path string, load Load) ([]string, error) {
	b, err := json.Marshal(load)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return []string{self, writerArg, "-db", path, "-load", string(b)}, nil
}

func startWriter(path string, load Load) (*WriterProcess, error) {
	args, err := WriterCommand(path, load)
	if err != nil {
		return nil, err
	}
	w := &WriterProcess{cmd: exec.Command(args[0], args[1:]...)}
	w.cmd.Stderr = os.Stderr
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.out = bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := w.out.ReadBytes('\n'); err != nil {
		return nil, errors.Join(err, w.in.Close(), w.cmd.Wait())
	}
	return w, nil
}

// Stop lets the writer end its commit and returns what it did.
func (w *WriterProcess) Stop(t testing.TB) Summary {
	t.Helper()
	if err := w.in.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		t.Fatalf("stop writer: %v", err)
	}
	return w.Wait(t)
}

// Kill ends the writer with SIGKILL, whatever it is doing.
func (w *WriterProcess) Kill(t testing.TB) {
	t.Helper()
	w.done = true
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatalf("kill writer: %v", err)
	}
	var exit *exec.ExitError
	if err := w.cmd.Wait(); !errors.As(err, &exit) {
		t.Fatalf("the writer ended before it was killed: %v", err)
	}
}

// Wait waits until a writer with a limited load is done.
func (w *WriterProcess) Wait(t testing.TB) Summary {
	t.Helper()
	s, err := w.wait()
	if err != nil {
		t.Fatalf("writer: %v", err)
	}
	return s
}

func (w *WriterProcess) finish() (Summary, error) {
	if w.done {
		return Summary{}, nil
	}
	err := w.in.Close()
	s, waited := w.wait()
	return s, errors.Join(err, waited)
}

func (w *WriterProcess) wait() (s Summary, err error) {
	w.done = true
	err = json.NewDecoder(w.out).Decode(&s)
	return s, errors.Join(err, w.cmd.Wait())
}
