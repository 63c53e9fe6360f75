package quarantine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/mattn/go-sqlite3"
	"golang.org/x/sys/unix"

	"github.com/tidemark-io/tidemark/ltx"
)

// settle makes a copied database one file and describes it. One that SQLite
// finds damaged is kept all the same, with what lies beside it.
func settle(ctx context.Context, path string) (Copy, error) {
	var c Copy
	err := withDatabase(path, "mode=rw", func(db *sql.DB) (err error) {
		// Reading undoes an unfinished transaction.
		if c.Tables, err = countRows(ctx, db); err != nil {
			return err
		}
		var busy, frames, done int
		err = db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &done)
		if err == nil && busy != 0 {
			err = errors.New("the copy is in use")
		}
		return err
	})
	if code := codeOf(err); code == sqlite3.ErrCorrupt || code == sqlite3.ErrNotADB {
		c.Damage, err = err.Error(), nil
	}
	if err != nil {
		return Copy{}, full(err)
	}
	spent := []string{"-shm"}
	if c.Damage == "" {
		spent = append(spent, "-journal")
		if _, err := os.Lstat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
			return Copy{}, errors.Join(errors.New("SQLite left a WAL beside it"), err)
		}
	}
	for _, part := range spent {
		if err := ignoreMissing(os.Remove(path + part)); err != nil {
			return Copy{}, err
		}
	}
	if err := c.sum(ctx, path); err != nil {
		return Copy{}, err
	}
	return c, syncFile(path)
}

// sum adds the checksum of the file.
func (c *Copy) sum(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	c.PageSize, c.Pages, c.Checksum = pageSizeOf(f), 0, ltx.ChecksumFlag
	if !ltx.ValidPageSize(c.PageSize) {
		c.PageSize = 0
		return nil
	}
	page, lock := make([]byte, c.PageSize), ltx.LockPgno(c.PageSize)
	r := io.NewSectionReader(f, 0, 1<<62)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := io.ReadFull(r, page); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		} else if err != nil {
			return err
		}
		if c.Pages++; c.Pages != lock {
			c.Checksum ^= ltx.ChecksumPage(c.Pages, page)
		}
	}
	c.Checksum |= ltx.ChecksumFlag
	return nil
}

// countRows counts the rows of every table that holds any itself.
func countRows(ctx context.Context, db *sql.DB) ([]Table, error) {
	names, err := column(ctx, db, "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'shadow') "+
		"AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name")
	if err != nil {
		return nil, err
	}
	tables := []Table{}
	for _, name := range names {
		t := Table{Name: name}
		err := db.QueryRowContext(ctx, "SELECT count(*) FROM main."+quote(name)).Scan(&t.Rows)
		if codeOf(err) == sqlite3.ErrError {
			t.Rows, err = -1, nil // it needs what the application alone brings along
		}
		if err != nil {
			return tables, fmt.Errorf("count the rows of %s: %w", name, err)
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// column returns the first column of a query.
func column(ctx context.Context, db *sql.DB, query string, args ...any) (values []string, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, rows.Err()
}

// withDatabase calls do with one connection.
func withDatabase(path, query string, do func(*sql.DB) error) error {
	db, err := sql.Open("sqlite3", fileURL(path, query+"&_busy_timeout=5000"))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	return errors.Join(do(db), db.Close())
}

func fileURL(path, query string) string {
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: query}
	return u.String()
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// codeOf returns SQLite's code of an error; 0: it is not SQLite's.
func codeOf(err error) sqlite3.ErrNo {
	var e sqlite3.Error
	errors.As(err, &e)
	return e.Code
}

// full makes SQLite's word for a full disk the system's.
func full(err error) error {
	var e sqlite3.Error
	if errors.As(err, &e) && (e.Code == sqlite3.ErrFull || e.SystemErrno == unix.ENOSPC) {
		return fmt.Errorf("%w: %w", err, unix.ENOSPC)
	}
	return err
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
