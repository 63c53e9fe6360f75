package child_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/child"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// reaperEnv makes the test binary run one reaping child and report.
const reaperEnv = "TIDEMARK_TEST_REAPER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(reaperEnv); dir != "" {
		os.Exit(runReaper(dir))
	}
	os.Exit(m.Run())
}

func TestExitCodeIsThatOfAShell(t *testing.T) {
	for _, test := range []struct {
		script string
		want   int
	}{
		{"exit 0", 0},
		{"exit 7", 7},
		{"kill -KILL $$", 128 + 9},
		{"kill -TERM $$", 128 + 15},
	} {
		got, err := child.Command{Args: []string{"sh", "-c", test.script}}.Run(t.Context())
		if err != nil || got != test.want {
			t.Errorf("%q: got %d, %v; want %d", test.script, got, err, test.want)
		}
	}
}

func TestMissingProgramIsAnErrorThatNamesIt(t *testing.T) {
	for _, args := range [][]string{nil, {"/nowhere/program"}} {
		_, err := child.Command{Args: args}.Run(t.Context())
		if !errors.Is(err, child.ErrStart) {
			t.Errorf("%v: got %v, want ErrStart", args, err)
		}
		if len(args) > 0 && !strings.Contains(err.Error(), args[0]) {
			t.Errorf("%v: error does not name the program: %v", args, err)
		}
	}
}

func TestSignalsReachTheChild(t *testing.T) {
	testdb.ChildrenHangUp()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1} {
		ready := filepath.Join(t.TempDir(), "ready")
		signals := make(chan os.Signal, 1)
		script := `trap 'exit 40' TERM; trap 'exit 41' HUP; trap 'exit 42' USR1; : > "$0"; while :; do sleep 0.01; done`
		want := map[syscall.Signal]int{syscall.SIGTERM: 40, syscall.SIGHUP: 41, syscall.SIGUSR1: 42}[sig]

		var group errgroup.Group
		group.Go(func() error {
			defer func() { signals <- sig }()
			return appears(ready)
		})
		c := child.Command{Args: []string{"sh", "-c", script, ready}, Signals: signals}
		got, err := c.Run(t.Context())
		if err := errors.Join(err, group.Wait()); err != nil || got != want {
			t.Errorf("%v: got %d, %v; want %d", sig, got, err, want)
		}
	}
}

func TestEndOfContextKillsAChildThatIgnoresSignals(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	group.Go(func() error {
		defer cancel()
		return appears(ready)
	})
	c := child.Command{Args: []string{"sh", "-c", `trap '' TERM; : > "$0"; while :; do sleep 0.01; done`, ready}}
	got, err := c.Run(ctx)
	if err := errors.Join(err, group.Wait()); err != nil || got != 128+9 {
		t.Fatalf("got %d, %v; want %d", got, err, 128+9)
	}
}

func TestOrphansAreReaped(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), reaperEnv+"="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// runReaper becomes the parent of orphans, runs a child that leaves one behind
// and ends with code 5 only when the orphan is gone from the process table.
func runReaper(dir string) int {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		println(err.Error())
		return 1
	}
	script := `cd "$0"; (sh -c 'echo $$ > pid; exit 3' &) ; n=0
while [ ! -s pid ] || [ -d /proc/$(cat pid) ]; do n=$((n+1)); [ $n -lt 1000 ] || exit 6; sleep 0.01; done; exit 5`
	got, err := child.Command{Args: []string{"sh", "-c", script, dir}, Reap: true}.Run(context.Background())
	if err != nil || got != 5 {
		println("reaper: code", got)
		return 1
	}
	return runShared(script, dir)
}

// runShared does the same with a Reaper, beside commands that end at once.
func runShared(script, dir string) int {
	ctx, cancel := context.WithCancel(context.Background())
	reaper := child.NewReaper()
	var group, commands errgroup.Group
	group.Go(func() error { _ = reaper.Run(ctx); return nil })
	for want := range 8 {
		commands.Go(func() error {
			text := "exit " + strconv.Itoa(want)
			if want == 5 {
				text = script
			}
			got, err := child.Command{Args: []string{"sh", "-c", text, dir}, Reaper: reaper, Group: true}.Run(ctx)
			if err == nil && got != want {
				err = errors.New("code " + strconv.Itoa(got) + ", want " + strconv.Itoa(want))
			}
			return err
		})
	}
	err := commands.Wait()
	cancel()
	_ = group.Wait()
	if err != nil {
		println("shared reaper:", err.Error())
		return 1
	}
	return 0
}

// appears polls for a file.
func appears(path string) error {
	deadline := time.Now().Add(10 * time.Second)
	for tick := time.NewTicker(time.Millisecond); time.Now().Before(deadline); <-tick.C {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
	}
	return errors.New(path + " did not appear")
}
