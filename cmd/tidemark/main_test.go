package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/demo"
	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// patience is how long a script waits for what must happen.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tidemark": main, "catalog": catalogTool, "setaside": setAsideTool})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, parameters("testdata", nil))
}

func TestScriptsOnS3(t *testing.T) {
	server := testbucket.Gateway(t)
	empty := server.URL("lake/empty")
	env := append(server.Env(), "URL="+server.URL("lake/db"), "OTHER="+server.URL("lake/other"), "EMPTY="+empty,
		"SECRET="+testbucket.SecretKey,
		"NOBUCKET="+strings.Replace(empty, "//"+testbucket.Bucket, "//no-such-bucket", 1))
	testscript.Run(t, parameters(filepath.Join("testdata", "s3"), env))
}

func parameters(dir string, env []string) testscript.Params {
	testdb.ChildrenHangUp()
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Vars = append(append(e.Vars, env...),
				"LOG_LEVEL=", configVariable+"=", "XDG_RUNTIME_DIR="+filepath.Join(e.WorkDir, "run"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"until": until, "waitfor": waitFor, "code": code, "signal": signalAll,
		},
	}
}

// until REGEXP PROGRAM ARGS... runs a program again and again until it ends
// well and prints what matches.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until REGEXP PROGRAM ARGS...")
	}
	want := regexp.MustCompile(args[0])
	ts.Check(poll(func() error {
		err := ts.Exec(args[1], args[2:]...)
		out := ts.ReadFile("stdout")
		if err == nil && !want.MatchString(out) {
			err = fmt.Errorf("no match for %s in %q", want, out)
		}
		return err
	}))
}

// code N PROGRAM ARGS... runs a program that must end with code N.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM ARGS...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// signalAll SIGNAL sends a signal to what runs in the background.
func signalAll(ts *testscript.TestScript, neg bool, args []string) {
	number := map[string]syscall.Signal{
		"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "HUP": syscall.SIGHUP, "USR1": syscall.SIGUSR1,
	}
	if neg || len(args) != 1 || number[args[0]] == 0 {
		ts.Fatalf("usage: signal TERM|INT|KILL|HUP|USR1")
	}
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(number[args[0]]))
	}
}

// waitFor FILE waits for a file to exist.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitfor FILE")
	}
	path := ts.MkAbs(args[0])
	ts.Check(poll(func() error {
		_, err := os.Stat(path)
		return err
	}))
}

// poll repeats check until it succeeds or patience ends.
func poll(check func() error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		if err := check(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// catalogTool makes and compares the databases of scripts:
//
//	catalog create PATH          an empty catalog
//	catalog add PATH N           N commits
//	catalog show PATH            how many commits it has
//	catalog same PATH PATH       fails unless both are equal
func catalogTool() {
	if err := runCatalogTool(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "catalog:", err)
		os.Exit(1)
	}
}

func runCatalogTool(args []string) error {
	ctx := context.Background()
	if len(args) < 2 {
		return errors.New("want a verb and a path")
	}
	switch args[0] {
	case "create":
		return demo.Create(ctx, args[1])
	case "add":
		n, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		return demo.Write(ctx, args[1], time.Microsecond, func(int64) {
			if n--; n == 0 {
				cancel()
			}
		})
	case "show":
		p, err := demo.Take(ctx, args[1])
		fmt.Printf("%d commits, first broken %d, %s\n", p.Commits, p.Broken, p.Integrity)
		return err
	case "same":
		a, err := demo.Take(ctx, args[1])
		if err != nil {
			return err
		}
		b, err := demo.Take(ctx, args[2])
		if err == nil && a != b {
			err = fmt.Errorf("%+v is not %+v", a, b)
		}
		return err
	}
	return fmt.Errorf("unknown verb %s", args[0])
}
