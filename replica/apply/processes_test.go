package apply_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// helper is another process, which ends when its input is closed.
type helper struct {
	cmd   *exec.Cmd
	input io.WriteCloser
	out   bytes.Buffer
}

func start(t testing.TB, role string, args ...string) *helper {
	t.Helper()
	h := &helper{cmd: child(role, args...)}
	h.cmd.Stdout = &h.out
	var err error
	if h.input, err = h.cmd.StdinPipe(); err == nil {
		err = h.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *helper) stop(t testing.TB) string {
	t.Helper()
	if err := h.input.Close(); err != nil {
		t.Error(err)
	}
	if err := h.cmd.Wait(); err != nil {
		t.Errorf("%v: %v", h.cmd.Args, err)
	}
	return strings.TrimSpace(h.out.String())
}

func startReaders(t testing.TB, role, path string, n int) (all []*helper) {
	t.Helper()
	for range n {
		all = append(all, start(t, role, path))
	}
	return all
}

// stopReaders returns how often they read.
func stopReaders(t testing.TB, all []*helper) (reads int) {
	t.Helper()
	for _, h := range all {
		n, err := strconv.Atoi(h.stop(t))
		if err != nil {
			t.Error(err)
		}
		reads += n
	}
	return reads
}

// hold runs a statement and stays until its input ends. It tells by a file that
// it has come so far.
func hold(path, statement string) error {
	db, err := sql.Open("sqlite3", "file:"+path+"?mode=rw&_busy_timeout=20000")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, q := range strings.Split(statement, ";") {
		rows, err := db.Query(q)
		if err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
		for rows.Next() {
		}
		if err := rows.Close(); err != nil {
			return err
		}
	}
	if err := os.WriteFile(path+".held", nil, 0o600); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
