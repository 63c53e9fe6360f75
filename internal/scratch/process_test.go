package scratch_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/scratch"
)

// rootVariable tells the test binary to be a process that has a scratch file.
const rootVariable = "TIDEMARK_SCRATCH_TEST_ROOT"

func TestMain(m *testing.M) {
	if root := os.Getenv(rootVariable); root != "" {
		if err := hold(root); err != nil {
			fmt.Println(err)
		}
		return
	}
	os.Exit(m.Run())
}

// hold makes a file, says so and waits to be killed.
func hold(root string) error {
	s, err := scratch.New(root, 0)
	if err != nil {
		return err
	}
	f, err := s.Create()
	if err != nil {
		return err
	}
	if _, err := io.WriteString(f, "content"); err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// holder starts such a process.
func holder(t *testing.T, root string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), rootVariable+"="+root)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the process said %q, %v", line, err)
	}
	return cmd
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

func TestWhatKilledProcessesLeftIsClearedAndWhatOthersUseIsNot(t *testing.T) {
	root := t.TempDir()
	killed, alive := holder(t, root), holder(t, root)
	kill(t, killed)
	empty := filepath.Join(root, "tidemark-scratch-never-locked")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(root, "somebody-else")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	create(t, newSpace(t, root, 0), "ours")
	// Directory, lock and file of this process and of the one alive, and what
	// is none of ours.
	if left := names(t, root); len(left) != 3+3+1 {
		t.Errorf("left are %v", left)
	}
	kill(t, alive)
}

func TestSpacesThatStartTogetherDoNotTakeEachOtherForLeftovers(t *testing.T) {
	root := t.TempDir()
	var g errgroup.Group
	for range 16 {
		s := newSpace(t, root, 0)
		g.Go(func() error {
			f, err := s.Create()
			if err != nil {
				return err
			}
			if _, err := io.WriteString(f, "x"); err != nil {
				return err
			}
			_, err = os.Stat(root)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if found := names(t, root); len(found) != 16*3 {
		t.Errorf("%d names, want directory, lock and file of 16: %v", len(found), found)
	}
}
