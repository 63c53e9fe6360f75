package quarantine_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/quarantine"
)

// command runs this test binary so that it sets the database aside.
func (p *place) command() *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	return exec.Command(self, append([]string{setArg, p.dir, p.database}, p.input.Files...)...)
}

func TestAProcessKilledInTheMiddleLeavesNoEntry(t *testing.T) {
	p := newPlace(t, table, more)
	pipe := filepath.Join(t.TempDir(), "pipe") // which is never written to
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	files := p.input.Files
	p.input.Files = append(files, pipe)
	cmd := p.command()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		if found, _ := filepath.Glob(filepath.Join(p.dir, "*.tmp", "ltx", "*.ltx")); len(found) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not get to the files")
		}
	}
	if err := errors.Join(cmd.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("it was done before it was killed")
	}
	p.list(0)
	p.input.Files = files
	e := p.set()
	if got := names(t, p.dir); got != e.ID {
		t.Errorf("the quarantine holds %s", got)
	}
}

func TestAFileThatMayNotGrowLeavesNothing(t *testing.T) {
	p := newPlace(t, table, "INSERT INTO t VALUES(3, zeroblob(3000000))")
	before := p.picture()
	for _, limit := range []uint64{1000, 1 << 20} { // of the file, and of the file with its WAL
		cmd := p.command()
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		args := append([]string{"-c", fmt.Sprintf(`ulimit -f %d; exec "$0" "$@"`, limit/512), cmd.Path}, cmd.Args[1:]...)
		cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh"}, args...)
		if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "quarantine of "+p.database) {
			t.Fatalf("got %v, %q", err, out.String())
		}
		if got := names(t, p.dir); got != "" {
			t.Errorf("%s was left", got)
		}
		if p.picture() != before {
			t.Error("the database was changed")
		}
	}
	p.set()
}

func TestAFullDiskLeavesNothingAndIsNamed(t *testing.T) {
	p := newPlace(t, table, "INSERT INTO t VALUES(3, zeroblob(3000000))")
	before := p.picture()
	for _, size := range []string{"512k", "4m"} { // too small for the copy, and for bringing its WAL into it
		dir := t.TempDir()
		if err := unix.Mount("none", dir, "tmpfs", 0, "size="+size); err != nil {
			t.Logf("no disk that could be full: %v", err) // the test above shows most of it
			return
		}
		t.Cleanup(func() {
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		full := filepath.Join(dir, "quarantine")
		_, err := quarantine.Set(t.Context(), full, p.input)
		if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "make room there") {
			t.Errorf("got %v", err)
		}
		if got := names(t, full); got != "" {
			t.Errorf("%s was left", got)
		}
	}
	if p.picture() != before {
		t.Error("the database was changed")
	}
}

func TestSetRefusesADatabaseInTheMiddleOfATransactionWithoutWAL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "live.db")
	db := testdb.Create(t, path, testdb.Options{JournalMode: "DELETE"})
	testdb.Exec(t, db, table, "BEGIN EXCLUSIVE", "INSERT INTO t VALUES(3, 1)")
	p := &place{t: t, database: path, dir: filepath.Join(t.TempDir(), "quarantine")}
	out, err := p.command().Output()
	if err != nil || !strings.Contains(string(out), "stop the application") {
		t.Errorf("got %q and %v", out, err)
	}
	testdb.Exec(t, db, "COMMIT")
	if out, err := p.command().Output(); err != nil || string(out) != "<nil>\n" {
		t.Errorf("got %q and %v", out, err)
	}
	testdb.SameDatabase(t, p.list(1)[0].Database(), path)
}
