package rig

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// Command is a program to start.
type Command struct {
	Path string
	Args []string
	Env  []string // beside the environment of the test, without its AWS settings
	// Files are open in it from descriptor 3 on.
	Files []*os.File
}

// Process is a running program with its output in a file and its peak memory
// watched. It is killed when the test ends, and its output shown if the test
// failed.
type Process struct {
	cmd   *exec.Cmd
	start time.Time
	took  time.Duration
	log   string
	peak  atomic.Int64
	// expected: the test itself ended it by SIGKILL.
	expected atomic.Bool
	done     chan struct{}
	group    errgroup.Group
}

// Start starts a program.
func Start(t testing.TB, c Command) *Process {
	t.Helper()
	p := &Process{cmd: exec.Command(c.Path, c.Args...), done: make(chan struct{})}
	out, err := os.CreateTemp(t.TempDir(), filepath.Base(c.Path)+"-*.log")
	if err != nil {
		t.Fatal(err)
	}
	p.log = out.Name()
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Env, p.cmd.ExtraFiles = append(cleanEnv(), c.Env...), c.Files
	// A group of its own, so that what it starts can be ended with it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.start = time.Now()
	if err := errors.Join(p.cmd.Start(), out.Close()); err != nil {
		t.Fatalf("start %s: %v", c.Path, err)
	}
	p.group.Go(p.wait)
	p.group.Go(p.watch)
	t.Cleanup(func() { p.cleanUp(t) })
	return p
}

func cleanEnv() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "AWS_") && !strings.HasPrefix(e, "LITESTREAM_") {
			env = append(env, e)
		}
	}
	return env
}

func (p *Process) wait() error {
	defer close(p.done)
	err := p.cmd.Wait()
	p.took = time.Since(p.start)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

func (p *Process) watch() error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if hwm := procStatus(p.cmd.Process.Pid, "VmHWM"); hwm > 0 {
			p.peak.Store(hwm)
		}
		select {
		case <-p.done:
			return nil
		case <-tick.C:
		}
	}
}

// procStatus reads a field in kB of /proc/<pid>/status, in bytes. The peak of
// wait4 will not do: it begins with the memory of the process that forked.
func procStatus(pid int, field string) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, ok := bytes.Cut(b, []byte("\n"+field+":"))
	if !ok {
		return 0
	}
	var kb int64
	if _, err := fmt.Sscan(string(rest), &kb); err != nil {
		return 0
	}
	return kb << 10
}

func (p *Process) cleanUp(t testing.TB) {
	// The group may hold children that outlived the program.
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Errorf("kill %s: %v", p.cmd.Path, err)
	}
	if err := p.group.Wait(); err != nil {
		t.Errorf("wait for %s: %v", p.cmd.Path, err)
	}
	lines := 60
	if p.expected.Load() {
		lines = 8
	}
	if code := p.cmd.ProcessState.ExitCode(); t.Failed() && code != 0 {
		t.Logf("%s exited with %d; the end of its output:\n%s", p.cmd, code, p.tail(lines))
	}
}

func (p *Process) tail(lines int) string {
	all := strings.Split(strings.TrimRight(p.Output(), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Output returns what the program has printed so far.
func (p *Process) Output() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Pid returns the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal to the program alone, not to what it started.
func (p *Process) Signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatalf("send %v to %s: %v", sig, p.cmd.Path, err)
	}
}

// Kill ends the program with SIGKILL and waits for its end.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	p.expected.Store(true)
	p.Signal(t, syscall.SIGKILL)
	p.Wait(t, time.Minute)
}

// Alive tells whether the program runs.
func (p *Process) Alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Exit is how a program ended.
type Exit struct {
	Code   int // -1: by a signal
	Took   time.Duration
	Peak   int64 // bytes of resident memory
	Output string
}

// Wait waits for the end of the program, which must come within limit.
func (p *Process) Wait(t testing.TB, limit time.Duration) Exit {
	t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		t.Fatalf("%s still runs after %v", p.cmd, limit)
	}
	return Exit{p.cmd.ProcessState.ExitCode(), p.took, p.peak.Load(), p.Output()}
}

// Peak returns the most resident memory so far, in bytes.
func (p *Process) Peak() int64 { return p.peak.Load() }

// Stop asks the program to end with SIGTERM and waits for it.
func (p *Process) Stop(t testing.TB, limit time.Duration) Exit {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)
	return p.Wait(t, limit)
}
