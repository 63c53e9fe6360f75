//go:build e2e

package e2e_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/testdb"
)

// applicationEnv makes this binary the application of a node: it holds the
// path of its database, the file that it logs to, and its rate.
const applicationEnv = "TIDEMARK_TEST_APPLICATION"

const (
	committed    = "c" // in the log of an application: this row was committed
	acknowledged = "a" // all rows of this run up to this one are on the replica
)

// runApplication does not return in a process that is an application.
func runApplication() {
	args := strings.Split(os.Getenv(applicationEnv), "\n")
	if len(args) != 4 {
		return
	}
	rate, err := strconv.Atoi(args[3])
	if err == nil {
		err = (&application{path: args[0], log: args[1], binary: args[2], run: fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano())}).Run(rate)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "application:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// applicationVariable is the environment of an application.
func applicationVariable(path, log, binary string, rate int) string {
	return fmt.Sprintf("%s=%s\n%s\n%s\n%d", applicationEnv, path, log, binary, rate)
}

// application commits rows and logs each of them after its commit, and those
// that the sidecar has proven to be on the replica.
type application struct {
	path, log, binary, run string
	newest                 atomic.Int64
}

func (a *application) Run(rate int) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log, err := os.OpenFile(a.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite3", "file:"+a.path+"?_busy_timeout=5000&_journal_mode=WAL&_synchronous=NORMAL")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close(), log.Close()) }()
	if _, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS rows (run TEXT, n INTEGER, body BLOB, PRIMARY KEY (run, n))"); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.commit(ctx, db, log, rate) })
	group.Go(func() error { return a.acknowledge(ctx, log) })
	return group.Wait()
}

func (a *application) commit(ctx context.Context, db *sql.DB, log *os.File, rate int) error {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for n := int64(1); ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if _, err := db.Exec("INSERT INTO rows VALUES (?, ?, randomblob(100 + abs(random() % 900)))", a.run, n); err != nil {
			if testdb.Busy(err) {
				n--
				continue
			}
			return fmt.Errorf("commit row %d: %w", n, err)
		}
		if _, err := fmt.Fprintf(log, "%s %s %d\n", committed, a.run, n); err != nil {
			return err
		}
		a.newest.Store(n)
	}
}

// acknowledge logs up to where the sidecar proves rows to be on the replica.
func (a *application) acknowledge(ctx context.Context, log *os.File) error {
	for ctx.Err() == nil {
		n := a.newest.Load()
		cmd := exec.CommandContext(ctx, a.binary, "sync", "-wait", "-timeout", "5s", a.path)
		cmd.Env = append(os.Environ(), applicationEnv+"=")
		text, err := cmd.CombinedOutput()
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "application: sync: %v: %s\n", err, text)
		}
		if err == nil && n > 0 {
			if _, err := fmt.Fprintf(log, "%s %s %d\n", acknowledged, a.run, n); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil
}

// ledger is what all applications of a database have logged.
type ledger struct {
	rows         map[string]bool  // "run n" of each row that was committed
	acknowledged map[string]int64 // of each run
}

func readLedger(t *testing.T, paths ...string) ledger {
	t.Helper()
	l := ledger{rows: map[string]bool{}, acknowledged: map[string]int64{}}
	for _, path := range paths {
		f, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for s := bufio.NewScanner(f); s.Scan(); {
			var what, run string
			var n int64
			if _, err := fmt.Sscan(s.Text(), &what, &run, &n); err != nil {
				continue // cut off by SIGKILL
			}
			if what == committed {
				l.rows[fmt.Sprintf("%s %d", run, n)] = true
			} else {
				l.acknowledged[run] = max(l.acknowledged[run], n)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// rowsOf returns the rows that applications left in a database.
func rowsOf(t *testing.T, path string) map[string]bool {
	t.Helper()
	rows, err := testdb.Open(t, path).QueryContext(t.Context(), "SELECT run, n FROM rows")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := map[string]bool{}
	for rows.Next() {
		var run string
		var n int64
		if err := rows.Scan(&run, &n); err != nil {
			t.Fatal(err)
		}
		found[fmt.Sprintf("%s %d", run, n)] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// missing returns how many rows are in none of several databases, and one of
// them.
func (l ledger) missing(found ...map[string]bool) (n int, one string) {
	for row := range l.rows {
		there := false
		for _, rows := range found {
			there = there || rows[row]
		}
		if !there {
			n, one = n+1, row
		}
	}
	return n, one
}

// unkept returns how many rows that were acknowledged a database misses.
func (l ledger) unkept(found map[string]bool) (n int, one string) {
	for run, newest := range l.acknowledged {
		for i := int64(1); i <= newest; i++ {
			if row := fmt.Sprintf("%s %d", run, i); !found[row] {
				n, one = n+1, row
			}
		}
	}
	return n, one
}
