// Package child runs the application under the sidecar: it starts one process,
// passes signals on to it, tells how it ended as a shell would, and, as the
// first process of a container, reaps the orphans that fall to it. It knows
// nothing of databases.
package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// ErrStart is wrapped when the process could not be started.
var ErrStart = errors.New("start child")

// Command is a process to run.
type Command struct {
	Args    []string         // program and arguments, no shell
	Signals <-chan os.Signal // each is passed on to the process
	Reap    bool             // also wait for orphans: this process is their parent
	Env     []string         // beside the environment of this process
	// Group gives the process a group of its own, which gets the signals that
	// ask for an end and is killed whole, at the latest when the process has
	// ended; where the system can, it also dies with this process.
	Group bool
	// Reaper, which runs, waits for the process in the place of Reap; nil: none.
	Reaper *Reaper
}

// Run starts the process with the standard streams of this one and waits for
// its end. The code is its exit code, or 128 plus the signal that ended it.
// When ctx ends the process is killed. No other child of this process may be
// waited for while Run is reaping.
func (c Command) Run(ctx context.Context) (code int, err error) {
	if len(c.Args) == 0 {
		return 0, fmt.Errorf("%w: the command is empty", ErrStart)
	}
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if len(c.Env) > 0 {
		cmd.Env = append(os.Environ(), c.Env...)
	}
	if c.Group {
		cmd.SysProcAttr = ownGroup()
	}
	wait, err := c.start(cmd)
	if err != nil {
		return 0, fmt.Errorf("%w %q: %w", ErrStart, c.Args[0], err)
	}
	ended := make(chan struct{})
	var group errgroup.Group
	group.Go(func() error {
		defer close(ended)
		status, err := wait()
		code = exitCode(status)
		return err
	})
	c.relay(ctx, cmd.Process, ended)
	if c.Group {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // nobody of it may go on
	}
	if err := group.Wait(); err != nil {
		return 0, fmt.Errorf("wait for child %q: %w", c.Args[0], err)
	}
	return code, nil
}

// relay passes signals on until the process has ended. A signal that arrives
// just after its end has nobody to go to and is dropped.
func (c Command) relay(ctx context.Context, p *os.Process, ended <-chan struct{}) {
	done := ctx.Done()
	for {
		select {
		case <-ended:
			return
		case s := <-c.Signals:
			c.send(p, s)
		case <-done:
			c.send(p, syscall.SIGKILL)
			done = nil
		}
	}
}

// send leaves no process of a group out that is to end.
func (c Command) send(p *os.Process, s os.Signal) {
	sig, ok := s.(syscall.Signal)
	ends := sig == syscall.SIGTERM || sig == syscall.SIGINT || sig == syscall.SIGKILL
	if !c.Group || !ok || !ends {
		_ = p.Signal(s)
		return
	}
	_ = syscall.Kill(-p.Pid, sig)
}

// start starts the process and returns what waits for its end.
func (c Command) start(cmd *exec.Cmd) (wait func() (syscall.WaitStatus, error), err error) {
	if c.Reaper == nil {
		return func() (syscall.WaitStatus, error) { return c.wait(cmd) }, cmd.Start()
	}
	done, err := c.Reaper.start(cmd)
	return func() (syscall.WaitStatus, error) { return <-done, nil }, err
}

func (c Command) wait(cmd *exec.Cmd) (syscall.WaitStatus, error) {
	if c.Reap {
		return reap(cmd.Process.Pid)
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return status, nil
}

func exitCode(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}
