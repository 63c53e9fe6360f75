package apply_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mattn/go-sqlite3"

	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica/apply"
)

const ledger = `CREATE TABLE ledger (id INTEGER PRIMARY KEY, w INTEGER, pad BLOB);
CREATE INDEX by_w ON ledger(w);
CREATE TABLE total (n INTEGER, w INTEGER);
INSERT INTO total VALUES (0, 0);
CREATE TRIGGER more AFTER INSERT ON ledger BEGIN UPDATE total SET n = n+1, w = w+new.w; END;
CREATE TRIGGER other AFTER UPDATE OF w ON ledger BEGIN UPDATE total SET w = w-old.w+new.w; END;
CREATE TRIGGER less AFTER DELETE ON ledger BEGIN UPDATE total SET n = n-1, w = w-old.w; END`

// readAlong reads a copy, in transactions of several queries, until its input
// ends, and prints how often. A mixed state is an error.
func readAlong(path string, checks ...func(*sql.Tx) error) error {
	ended := make(chan struct{})
	stop := context.AfterFunc(untilEOF(), func() { close(ended) })
	defer stop()
	db, err := sql.Open("sqlite3", "file:"+path+"?mode=rw&_busy_timeout=20000")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	reads := 0
	for {
		select {
		case <-ended:
			fmt.Println(reads)
			return nil
		default:
		}
		err := readOnce(db, checks)
		var e sqlite3.Error
		if errors.As(err, &e) && e.Code == sqlite3.ErrBusy {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %d: %w", reads, err)
		}
		reads++
	}
}

// untilEOF returns a context that ends with the input.
func untilEOF() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	context.AfterFunc(canceled(), func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	})
	return ctx
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func readOnce(db *sql.DB, checks []func(*sql.Tx) error) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, check := range checks {
		if err := check(tx); err != nil {
			return err
		}
	}
	return nil
}

// totals compares three ways to add up the ledger.
func totals(tx *sql.Tx) error {
	var n, w [3]int64
	for i, query := range []string{
		"SELECT n, w FROM total",
		"SELECT count(*), coalesce(sum(w), 0) FROM ledger NOT INDEXED WHERE length(pad) >= 0",
		"SELECT count(*), coalesce(sum(w), 0) FROM ledger INDEXED BY by_w WHERE w >= 0",
	} {
		if err := tx.QueryRow(query).Scan(&n[i], &w[i]); err != nil {
			return err
		}
	}
	if n[0] != n[1] || n[0] != n[2] || w[0] != w[1] || w[0] != w[2] {
		return fmt.Errorf("mixed state: rows %v, sums %v", n, w)
	}
	return nil
}

func quickCheck(tx *sql.Tx) error {
	var found string
	if err := tx.QueryRow("PRAGMA quick_check").Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return errors.New(found)
	}
	return nil
}

// applyImages applies images to a copy as the instructions on its input say: a
// line with the image's file, the pass over the pages and the page at which to
// die; it answers each that it survives.
func applyImages(path, dir string) error {
	c, err := apply.Open(context.Background(), path, dir, apply.Options{})
	if err != nil {
		return err
	}
	var name string
	var txid uint64
	var pass, at int
	for {
		if _, err := fmt.Scanln(&name, &txid, &pass, &at); errors.Is(err, io.EOF) {
			return c.Close()
		} else if err != nil {
			return err
		}
		image, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f := between(nil, image, ltx.Pos{})
		f.Pre, f.Post.TXID = ltx.Pos{}, ltx.TXID(txid)
		f.Pages = dying(f.Pages, pass, at)
		if err := c.Apply(context.Background(), f); err != nil {
			return err
		}
		fmt.Println("applied", txid)
	}
}

// dying kills the process when the pages are gone through the pass-th time.
func dying(pages func() iter.Seq2[ltx.Page, error], pass, at int) func() iter.Seq2[ltx.Page, error] {
	calls := 0
	return func() iter.Seq2[ltx.Page, error] {
		calls++
		mine := calls
		return func(yield func(ltx.Page, error) bool) {
			n := 0
			for p, err := range pages() {
				if n++; mine == pass && n >= at {
					_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				}
				if !yield(p, err) {
					return
				}
			}
		}
	}
}

func TestReadersSeeNoMixedStateWhenTheApplierIsKilled(t *testing.T) {
	s := newSource(t, testdb.Options{PageSize: 1024}, ledger)
	s.exec(ledgerRows(400))
	c := newCopied(t, s.image, s.pos)
	c.close()
	readers := startReaders(t, "read", c.path, 2)
	random := rand.New(rand.NewPCG(1, 2))
	killed, applied := 0, 0
	for round := 0; round < 20; round++ {
		pass, at := 1+random.IntN(4), 1+random.IntN(len(s.image)/1024)
		var jobs strings.Builder
		for i := range 3 {
			s.exec(ledgerRows(1+random.IntN(20)), fmt.Sprintf("UPDATE ledger SET w = abs(random()) %% 1000 WHERE id %% 17 = %d", random.IntN(17)),
				fmt.Sprintf("DELETE FROM ledger WHERE id %% 23 = %d", random.IntN(23)))
			if random.IntN(6) == 0 {
				s.exec("VACUUM")
			}
			name := filepath.Join(t.TempDir(), strconv.Itoa(i))
			if err := os.WriteFile(name, s.image, 0o600); err != nil {
				t.Fatal(err)
			}
			die := 0
			if i == 2 {
				die = pass
			}
			fmt.Fprintln(&jobs, name, uint64(s.pos.TXID), die, at)
		}
		cmd := child("apply", c.path, c.dir)
		cmd.Stdin = strings.NewReader(jobs.String())
		out, err := cmd.Output()
		applied += strings.Count(string(out), "applied")
		if cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
			killed++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	reads := stopReaders(t, readers)
	t.Logf("%d changes applied, %d times killed, %d reads", applied, killed, reads)
	if killed < 15 || reads < 100 {
		t.Errorf("%d times killed, %d reads", killed, reads)
	}
	c.open()
	f := between(nil, s.image, ltx.Pos{})
	f.Pre, f.Post = ltx.Pos{}, s.pos
	c.apply(f)
	c.release(s.image, s.pos)
}

func TestAKilledChangeOfThePageSizeIsUndone(t *testing.T) {
	s := newSource(t, testdb.Options{PageSize: 1024}, "CREATE TABLE t (id INTEGER PRIMARY KEY, v)", fmt.Sprintf(fill, 800, 700))
	c := newCopied(t, s.image, s.pos)
	before := s.pos
	old := s.image
	for i, size := range []int{512, 4096, 65536} {
		c.close()
		other := newSource(t, testdb.Options{PageSize: size}, "CREATE TABLE t (id INTEGER PRIMARY KEY, v)", fmt.Sprintf(fill, 400*(1+i), 900))
		name := filepath.Join(t.TempDir(), "image")
		if err := os.WriteFile(name, other.image, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := child("apply", c.path, c.dir)
		cmd.Stdin = strings.NewReader(fmt.Sprintln(name, 9, 2, len(other.image)/size*2/3))
		if err := cmd.Run(); !cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
			t.Fatalf("not killed: %v", err)
		}
		if b := readAside(t, c.path); len(b) > 200 && sumOf(b) == before.PostApplyChecksum {
			t.Error("the file was not touched")
		}
		c.open()
		if c.Pos() != before {
			t.Fatalf("at %v, want %v", c.Pos(), before)
		}
	}
	c.release(old, before)
}

func ledgerRows(n int) string {
	return fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d) "+
		"INSERT INTO ledger(w, pad) SELECT abs(random()) %% 1000, randomblob(100) FROM n", n)
}
