package storage_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/storage"
)

const (
	racerRoot  = "TIDEMARK_TEST_RACER_ROOT" // makes the test binary a racer
	racers     = 4
	increments = 25
	claims     = 40
)

func TestMain(m *testing.M) {
	if root := os.Getenv(racerRoot); root != "" {
		if err := race(root); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// race increments a shared counter by swaps, and claims as many of the
// numbered keys as it can.
func race(root string) error {
	d, err := storage.NewDir(root)
	if err != nil {
		return err
	}
	ctx := context.Background()
	for n := 0; n < increments; {
		body, object, err := d.Get(ctx, "counter", storage.Range{})
		if err != nil {
			return err
		}
		text, err := io.ReadAll(body)
		if err := errors.Join(err, body.Close()); err != nil {
			return err
		}
		value, err := strconv.Atoi(string(text))
		if err != nil {
			return fmt.Errorf("counter holds %q: %w", text, err)
		}
		_, err = d.Put(ctx, "counter", strings.NewReader(strconv.Itoa(value+1)), storage.Condition{ETag: object.ETag})
		switch {
		case err == nil:
			n++
		case !errors.Is(err, storage.ErrPrecondition):
			return err
		}
	}
	for i := range claims {
		_, err := d.Put(ctx, fmt.Sprintf("claims/%d", i), strings.NewReader("x"), storage.Condition{Absent: true})
		if err == nil {
			fmt.Println("claimed", i)
		} else if !errors.Is(err, storage.ErrPrecondition) {
			return err
		}
	}
	return nil
}

func TestConditionsHoldBetweenProcesses(t *testing.T) {
	root := t.TempDir()
	store(t, newDir(t, root), "counter", "0")
	outputs := make([]string, racers)
	var group errgroup.Group
	for i := range racers {
		group.Go(func() error {
			racer := exec.CommandContext(t.Context(), os.Args[0])
			racer.Env = append(os.Environ(), racerRoot+"="+root)
			racer.Stderr = t.Output()
			output, err := racer.Output()
			outputs[i] = string(output)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	body, _, err := newDir(t, root).Get(t.Context(), "counter", storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); err != nil || string(got) != strconv.Itoa(racers*increments) {
		t.Errorf("counter: %s, %v; want %d: an increment was lost", got, err, racers*increments)
	}
	claimed := strings.Join(outputs, "")
	for i := range claims {
		if n := strings.Count(claimed, fmt.Sprintf("claimed %d\n", i)); n != 1 {
			t.Errorf("key %d was claimed %d times", i, n)
		}
	}
}
