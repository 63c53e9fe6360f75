package apply_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica/apply"
)

// eventually waits for a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited a minute for: %s", what)
		}
	}
}

// held starts a process that has run statements on a database and stays.
func held(t testing.TB, path, statements string) *helper {
	t.Helper()
	if err := os.Remove(path + ".held"); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	h := start(t, "hold", path, statements)
	eventually(t, statements, func() bool { _, err := os.Stat(path + ".held"); return err == nil })
	return h
}

func isBusy(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && e.Code == sqlite3.ErrBusy
}

func small(t testing.TB) *source {
	return newSource(t, testdb.Options{PageSize: 1024}, "CREATE TABLE t (id INTEGER PRIMARY KEY, v)", fmt.Sprintf(fill, 40, 300))
}

func TestALongReaderDelaysAChangeAndIsReported(t *testing.T) {
	s := small(t)
	c := newCopied(t, s.image, s.pos)
	c.close()
	var log bytes.Buffer
	c.options = apply.Options{Patience: 20 * time.Millisecond, Report: 50 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))}
	c.open()
	reader := held(t, c.path, "BEGIN; SELECT count(*) FROM t")
	before := s.pos
	f := s.exec("DELETE FROM t WHERE id > 10")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := c.Apply(ctx, f); !errors.Is(err, context.DeadlineExceeded) || c.Pos() != before {
		t.Errorf("got %v at %v, want the end of the context at %v", err, c.Pos(), before)
	}
	if !strings.Contains(log.String(), "readers delay the copy") {
		t.Errorf("log: %s", log.String())
	}
	// New readers are let in while the old one stays.
	other := testdb.Open(t, c.path)
	if n := testdb.Number(t, other, "SELECT count(*) FROM t"); n != 40 {
		t.Errorf("got %d rows", n)
	}
	reader.stop(t)
	c.apply(f)
	if n := testdb.Number(t, other, "SELECT count(*) FROM t"); n != 10 {
		t.Errorf("got %d rows", n)
	}
	if !c.Waiting().IsZero() {
		t.Error("still waits")
	}
}

func TestALockedCopyIsReadAndNotWritten(t *testing.T) {
	s := small(t)
	c := newCopied(t, s.image, s.pos)
	if err := c.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite3", c.path+"?_busy_timeout=0")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for range 5 {
		if _, err := db.Exec("INSERT INTO t(v) VALUES (1)"); !isBusy(err) {
			t.Fatalf("a writer got %v, want SQLITE_BUSY", err)
		}
		var n, want int64
		if err := db.QueryRow("SELECT count(*) FROM t").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if want = testdb.Number(t, s.db, "SELECT count(*) FROM t"); n != want {
			t.Errorf("got %d rows, want %d", n, want)
		}
		f := s.exec("INSERT INTO t(v) VALUES (2)", "UPDATE t SET v = randomblob(300)")
		broken, _ := failing(f)
		if err := c.Apply(t.Context(), broken); !errors.Is(err, os.ErrInvalid) {
			t.Fatalf("a change that fails in the middle: got %v", err)
		}
		if _, err := db.Exec("INSERT INTO t(v) VALUES (1)"); !isBusy(err) {
			t.Fatalf("a writer after that got %v, want SQLITE_BUSY", err)
		}
		c.apply(f)
	}
	if err := c.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("INSERT INTO t(v) VALUES (1)"); err != nil {
		t.Errorf("a writer after Unlock: %v", err)
	}
	if err := c.Apply(t.Context(), s.exec("INSERT INTO t(v) VALUES (2)")); !errors.Is(err, apply.ErrForeign) {
		t.Errorf("after somebody wrote: got %v", err)
	}
}

func TestWhatSomebodyElseWroteIsNoticedAndAdopted(t *testing.T) {
	for name, statements := range map[string]string{
		"a row":          "INSERT INTO t(v) VALUES (77)",
		"WAL mode":       "PRAGMA journal_mode=WAL; INSERT INTO t(v) VALUES (77)",
		"a VACUUM":       "INSERT INTO t(v) VALUES (77); DELETE FROM t WHERE id < 20; VACUUM",
		"while not open": "INSERT INTO t(v) VALUES (77)",
	} {
		t.Run(name, func(t *testing.T) {
			s := small(t)
			c := newCopied(t, s.image, s.pos)
			c.apply(s.exec("INSERT INTO t(v) VALUES (1)"))
			if name == "while not open" {
				c.close()
			}
			held(t, c.path, statements).stop(t)
			if name == "while not open" {
				c.open()
				if !c.Pos().IsZero() {
					t.Fatalf("the position is %v", c.Pos())
				}
			}
			f := s.exec("INSERT INTO t(v) VALUES (2)")
			if err := c.Apply(t.Context(), f); !errors.Is(err, apply.ErrForeign) && !errors.Is(err, apply.ErrUnknown) {
				t.Fatalf("got %v", err)
			}
			sum, err := c.Adopt(t.Context())
			if err != nil || c.Pos() != (ltx.Pos{PostApplyChecksum: sum}) {
				t.Fatalf("adopted at %v with %v, %v", c.Pos(), sum, err)
			}
			if n := testdb.Number(t, testdb.Open(t, c.path), "SELECT count(*) FROM t WHERE v = 77"); n != 1 {
				t.Errorf("the foreign row is there %d times", n)
			}
			f = between(nil, s.image, ltx.Pos{})
			f.Post = s.pos
			c.apply(f)
			c.release(s.image, s.pos)
		})
	}
}

func TestAnotherFileUnderTheNameIsNoticed(t *testing.T) {
	s := small(t)
	c := newCopied(t, s.image, s.pos)
	if err := os.WriteFile(c.path+".new", s.image, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(c.path+".new", c.path); err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), s.exec("DELETE FROM t")); !errors.Is(err, apply.ErrForeign) {
		t.Errorf("got %v", err)
	}
}

func TestADatabaseInWALModeIsConvertedOnceNobodyHasIt(t *testing.T) {
	s := small(t)
	if s.image[18] != 2 {
		t.Fatal("the source is not in WAL mode")
	}
	dir := t.TempDir()
	c := &copied{t: t, path: filepath.Join(dir, "copy.db"), dir: dir, wantClosed: true}
	if err := os.WriteFile(c.path, s.image, 0o644); err != nil {
		t.Fatal(err)
	}
	c.record(s.pos)
	user := held(t, c.path, "SELECT count(*) FROM t")
	if _, err := apply.Open(t.Context(), c.path, c.dir, apply.Options{}); !errors.Is(err, apply.ErrInUse) {
		t.Fatalf("while somebody has it open: got %v", err)
	}
	user.stop(t)
	checkIsCopy(c, false)
	c.open()
	checkIsCopy(c, true)
	if c.Pos() != s.pos {
		t.Errorf("at %v, want %v", c.Pos(), s.pos)
	}
	if b := readAside(t, c.path); b[18] != 1 || b[19] != 1 || bytes.Equal(b[24:28], s.image[24:28]) {
		t.Errorf("page 1 holds % x", b[16:32])
	}
	c.apply(s.exec("DELETE FROM t WHERE id < 9"))
	c.release(s.image, s.pos)
	checkIsCopy(c, false)
}

func checkIsCopy(c *copied, want bool) {
	c.t.Helper()
	if is, err := apply.IsCopy(c.path, c.dir); err != nil || is != want {
		c.t.Errorf("is a copy: %v, %v; want %v", is, err, want)
	}
}

func TestLostOrDamagedStateIsNeverGuessed(t *testing.T) {
	for name, c := range map[string]struct {
		damage []string
		known  bool
	}{
		"page sums gone":     {[]string{"sums"}, true},
		"note gone":          {[]string{"copy"}, false},
		"everything is gone": {[]string{"sums", "copy"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := small(t)
			d := newCopied(t, s.image, s.pos)
			d.apply(s.exec("INSERT INTO t(v) VALUES (1)"))
			d.close()
			for _, file := range c.damage {
				if err := os.WriteFile(filepath.Join(d.dir, file), []byte("garbage"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			d.open()
			if known := d.Pos() == s.pos; known != c.known || !known && !d.Pos().IsZero() {
				t.Errorf("at %v, want known: %v", d.Pos(), c.known)
			}
			if c.known {
				d.release(s.image, s.pos)
			}
		})
	}
}

func TestAReleasedCopyIsTakenUpAgainAfterItWasWritten(t *testing.T) {
	s := small(t)
	c := newCopied(t, s.image, s.pos)
	for range 3 {
		c.apply(s.exec("INSERT INTO t(v) VALUES (1)"))
		c.release(s.image, s.pos)
		// As primary: the application writes and the page sums go along.
		s.exec("INSERT INTO t(v) VALUES (5)")
		if err := os.WriteFile(c.path, s.image, 0o644); err != nil {
			t.Fatal(err)
		}
		c.record(s.pos)
		c.open()
		if c.Pos() != s.pos {
			t.Fatalf("at %v, want %v", c.Pos(), s.pos)
		}
	}
	c.release(s.image, s.pos)
}
