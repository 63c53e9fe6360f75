package apply_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

const roleVariable = "TIDEMARK_APPLY_TEST"

// TestMain lets the test binary be the other processes of a test.
func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		os.Exit(1)
	}
}

func play(role string, args []string) error {
	switch role {
	case "cat":
		b, err := os.ReadFile(args[0])
		if err == nil {
			_, err = os.Stdout.Write(b)
		}
		return err
	case "read":
		return readAlong(args[0], totals, quickCheck)
	case "total":
		return readAlong(args[0], totals)
	case "hold":
		return hold(args[0], args[1])
	case "apply":
		return applyImages(args[0], args[1])
	}
	return fmt.Errorf("no such role")
}

// child is a process that plays a role.
func child(role string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	// The race detector makes a process wait a second before it ends.
	cmd.Env = append(os.Environ(), roleVariable+"="+role, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	return cmd
}
