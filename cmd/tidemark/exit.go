package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-io/tidemark/leaser"
	"github.com/tidemark-io/tidemark/replica"
)

// Exit codes of every command.
const (
	exitDone = iota
	exitFailed
	exitUsage
	exitNoBackup
	exitFenced
)

// usageError is a mistake on the command line or in the configuration.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return &usageError{message: fmt.Sprintf(format, args...)}
}

// childError carries the exit code of the child process.
type childError struct {
	program string
	code    int
}

func (e *childError) Error() string {
	return fmt.Sprintf("the child process %q ended with exit code %d", e.program, e.code)
}

// exitCode maps an error to the exit code of the process. A child's own code
// goes before everything else.
func exitCode(err error) int {
	var usage *usageError
	var child *childError
	var lease *leaseError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &child):
		return child.code
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &lease):
		return lease.code
	case isFenced(err), errors.Is(err, leaser.ErrLost), errors.Is(err, leaser.ErrCluster), errors.Is(err, leaser.ErrHeld):
		return exitFenced
	case errors.Is(err, replica.ErrNoBackup), errors.Is(err, errNoLease):
		return exitNoBackup
	default:
		return exitFailed
	}
}

// describe is the one message that an error gets on standard error. The same
// failure may come from several workers; it is told once.
func describe(err error) string {
	if err == nil {
		return ""
	}
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimRight(line, "\n"); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func isFenced(err error) bool { return errors.Is(err, replica.ErrFenced) }
