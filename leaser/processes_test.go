package leaser_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/leaser"
	"github.com/tidemark-io/tidemark/storage"
)

const (
	candidateRoot = "TIDEMARK_TEST_CANDIDATE_ROOT" // makes the test binary a candidate
	candidateNode = "TIDEMARK_TEST_CANDIDATE_NODE"
	termsWanted   = 6
)

func TestMain(m *testing.M) {
	if root := os.Getenv(candidateRoot); root != "" {
		if err := candidate(root, os.Getenv(candidateNode)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// candidate competes in a process of its own until there have been enough
// terms. For each of its terms it makes a file exclusively, says so, and
// removes it.
func candidate(root, dir string) error {
	b, err := storage.NewDir(root)
	if err != nil {
		return err
	}
	n, err := leaser.OpenNode(dir, filepath.Base(dir))
	if err != nil {
		return err
	}
	cfg := leaser.Config{TTL: 3 * time.Second, Poll: 100 * time.Millisecond}.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return err
	}
	ctx, end := context.WithTimeoutCause(context.Background(), 2*time.Minute, errors.New("too slow"))
	defer end()
	ctx, enough := context.WithCancelCause(ctx)
	l := leaser.New(b, n, cfg, leaser.Options{})
	err = l.Elect(ctx, leaser.Roles{
		Standby: func(ctx context.Context) error { <-ctx.Done(); return nil },
		Primary: func(ctx context.Context, lease *leaser.Lease) error {
			if lease.Generation() > termsWanted {
				enough(errEnough)
				return nil
			}
			return alone(ctx, lease, filepath.Join(filepath.Dir(dir), "alone"))
		},
	})
	if errors.Is(err, errEnough) {
		return n.Close()
	}
	return err
}

var errEnough = errors.New("enough terms")

// alone proves that nobody else writes meanwhile.
func alone(ctx context.Context, lease *leaser.Lease, file string) error {
	if err := lease.Serving(ctx); err != nil {
		return nil
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		fmt.Println("not alone:", err)
		return nil
	}
	<-time.After(20 * time.Millisecond)
	if lease.Check() == nil {
		fmt.Println("term", lease.Generation())
	}
	return errors.Join(f.Close(), os.Remove(file))
}

// Each candidate gives its lease up at once, so all come to their turn.
func TestProcessesTakeTurnsOverADirectory(t *testing.T) {
	root, nodes := t.TempDir(), t.TempDir()
	var running []*exec.Cmd
	var outputs []*strings.Builder
	for i := range 3 {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), candidateRoot+"="+root, candidateNode+"="+filepath.Join(nodes, fmt.Sprint("node", i)))
		out := &strings.Builder{}
		c.Stdout, c.Stderr = out, os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		running, outputs = append(running, c), append(outputs, out)
	}
	for _, c := range running {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	terms := map[string]int{}
	for _, out := range outputs {
		for lines := bufio.NewScanner(strings.NewReader(out.String())); lines.Scan(); {
			terms[lines.Text()]++
		}
	}
	for line, n := range terms {
		if n != 1 || !strings.HasPrefix(line, "term ") {
			t.Errorf("%s, %d times", line, n)
		}
	}
	if len(terms) < termsWanted/2 {
		t.Errorf("%d terms, want about %d", len(terms), termsWanted)
	}
}
