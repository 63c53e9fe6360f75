package child_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/child"
)

// grandchild starts a process below a shell that heeds no SIGTERM, and leaves
// its number in the file $0.
const grandchild = `sh -c 'trap "" TERM HUP; echo $$ > "$0.new"; mv "$0.new" "$0"; while :; do sleep 0.01; done' "$0" & wait`

func TestAGroupIsKilledWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	group.Go(func() error {
		defer cancel()
		return appears(file)
	})
	_, err := child.Command{Args: []string{"sh", "-c", grandchild, file}, Group: true}.Run(ctx)
	if err := errors.Join(err, group.Wait()); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, file)
}

func TestNobodyOfAGroupOutlivesItsProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	signals := make(chan os.Signal, 1)
	var group errgroup.Group
	group.Go(func() error {
		defer func() { signals <- syscall.SIGTERM }()
		return appears(file)
	})
	code, err := child.Command{Args: []string{"sh", "-c", grandchild, file}, Signals: signals, Group: true}.Run(t.Context())
	if err := errors.Join(err, group.Wait()); err != nil || code != 128+15 {
		t.Fatalf("got %d, %v; want the shell to end by SIGTERM", code, err)
	}
	awaitEnd(t, file)
}

func TestTheEnvironmentIsAddedToThatOfTheProcess(t *testing.T) {
	t.Setenv("TIDEMARK_TEST_KEPT", "kept")
	code, err := child.Command{
		Args: []string{"sh", "-c", `test "$TIDEMARK_TEST_KEPT$TIDEMARK_ROLE" = keptprimary`}, Env: []string{"TIDEMARK_ROLE=primary"},
	}.Run(t.Context())
	if err != nil || code != 0 {
		t.Errorf("got %d, %v", code, err)
	}
}

// awaitEnd polls until the process that a file names is gone or a zombie.
func awaitEnd(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for tick := time.NewTicker(time.Millisecond); time.Now().Before(deadline); <-tick.C {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	t.Errorf("process %d is still alive", pid)
}
