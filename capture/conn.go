package capture

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/mattn/go-sqlite3"
)

// conn is one SQLite connection that only ever reads and checkpoints.
type conn struct {
	c    *sqlite3.SQLiteConn
	path string
}

// openConn connects to an existing database; it never creates one.
func openConn(path string) (*conn, error) {
	dsn := (&url.URL{Scheme: "file", Path: path}).String()
	dsn = strings.Replace(dsn, "file://", "file:", 1) + "?mode=rw&_busy_timeout=1000"
	dc, err := (&sqlite3.SQLiteDriver{}).Open(dsn)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", path, err)
	}
	c := &conn{dc.(*sqlite3.SQLiteConn), path}
	for _, pragma := range []string{"PRAGMA wal_autocheckpoint=0", "PRAGMA cache_size=-64"} {
		if err := c.exec(pragma); err != nil {
			return nil, errors.Join(fmt.Errorf("connect to %s: %w", path, err), c.close())
		}
	}
	return c, nil
}

func (c *conn) exec(query string) error {
	_, err := c.c.ExecContext(context.Background(), query, nil)
	return err
}

// row returns the first row of a query.
func (c *conn) row(query string) ([]driver.Value, error) {
	rows, err := c.c.QueryContext(context.Background(), query, nil)
	if err != nil {
		return nil, err
	}
	values := make([]driver.Value, len(rows.Columns()))
	err = rows.Next(values)
	if errors.Is(err, io.EOF) {
		err = errors.New("no row")
	}
	return values, errors.Join(err, rows.Close())
}

// begin opens a read transaction: from here on SQLite keeps what it sees.
func (c *conn) begin() error {
	if err := c.exec("BEGIN"); err != nil {
		return fmt.Errorf("begin read transaction on %s: %w", c.path, err)
	}
	if err := c.exec("PRAGMA schema_version"); err != nil {
		return errors.Join(fmt.Errorf("begin read transaction on %s: %w", c.path, readFault(err)), c.exec("ROLLBACK"))
	}
	return nil
}

func (c *conn) end() error {
	if c.c.AutoCommit() {
		return nil
	}
	if err := c.exec("COMMIT"); err != nil {
		return fmt.Errorf("end read transaction on %s: %w", c.path, err)
	}
	return nil
}

// passive copies into the database file what no reader still needs from the
// WAL. It waits for nobody: ran is false when another checkpoint was running.
func (c *conn) passive() (ran bool, err error) {
	v, err := c.row("PRAGMA wal_checkpoint(PASSIVE)")
	if isLocked(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("passive checkpoint of %s: %w", c.path, err)
	}
	return v[0] == int64(0), nil
}

// toWAL switches the database to WAL mode unless a transaction is open.
func (c *conn) toWAL() error {
	if err := c.exec("PRAGMA busy_timeout=0"); err != nil {
		return err
	}
	v, err := c.row("PRAGMA journal_mode=WAL")
	if err != nil {
		return err
	}
	if mode := fmt.Sprint(v[0]); mode != "wal" {
		return fmt.Errorf("journal mode stays %q", mode)
	}
	return c.exec("PRAGMA busy_timeout=1000")
}

// lockWriters takes the write lock without waiting; ok tells whether it did.
func (c *conn) lockWriters() (ok bool, err error) {
	if err := c.exec("PRAGMA busy_timeout=0"); err != nil {
		return false, err
	}
	err = c.exec("BEGIN IMMEDIATE")
	if isLocked(err) {
		return false, nil
	}
	return err == nil, err
}

func (c *conn) unlock() error { return c.exec("ROLLBACK") }

func (c *conn) close() error { return c.c.Close() }

// readFault adds what SQLite leaves out: it calls a file malformed that the
// system fails to read with EIO.
func readFault(err error) error {
	var e sqlite3.Error
	if errors.As(err, &e) && e.Code == sqlite3.ErrCorrupt {
		return fmt.Errorf("%w, or the disk fails to read it (input/output error)", err)
	}
	return err
}

func isLocked(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && (e.Code == sqlite3.ErrBusy || e.Code == sqlite3.ErrLocked)
}
