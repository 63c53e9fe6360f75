package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/filelock"
)

// shutGate keeps all other processes of this machine from committing to a
// database that is not a copy: it holds SQLite's write lock, so that they get
// SQLITE_BUSY, and readers go on. It must be opened again before the files of
// the database are closed by anybody else in this process.
type shutGate struct {
	db   *sql.DB
	tx   *sql.Conn
	file *os.File // to ask for the locks of others
}

// shut waits for a transaction that is open until ctx ends.
func shut(ctx context.Context, path string) (*shutGate, error) {
	name := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: "mode=rw&_busy_timeout=50"}
	db, err := sql.Open("sqlite3", name.String())
	if err != nil {
		return nil, fmt.Errorf("fence-local: %w", err)
	}
	g := &shutGate{db: db}
	if g.file, err = os.Open(path); err != nil {
		return nil, errors.Join(fmt.Errorf("fence-local: %w", err), db.Close())
	}
	if g.tx, err = db.Conn(ctx); err == nil {
		err = g.begin(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("fence-local: keep writers of %s out: %w", path, errors.Join(err, g.Open()))
	}
	return g, nil
}

func (g *shutGate) begin(ctx context.Context) error {
	for {
		_, err := g.tx.ExecContext(ctx, "BEGIN IMMEDIATE")
		if err == nil || ctx.Err() != nil {
			return err
		}
		select { // a writer is at work
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Open lets writers in again. A nil gate is open.
func (g *shutGate) Open() error {
	if g == nil {
		return nil
	}
	var err error
	if g.tx != nil {
		_, err = g.tx.ExecContext(context.Background(), "ROLLBACK")
		err = errors.Join(ignoreNoTransaction(err), g.tx.Close())
	}
	return errors.Join(err, g.db.Close(), g.file.Close())
}

// Alone tells whether no other process has the database open in WAL mode: each
// holds a shared lock from then on. A nil gate tells nothing, and is alone.
func (g *shutGate) Alone() bool {
	if g == nil {
		return true
	}
	other, err := filelock.OfOtherProcesses(g.file, filelock.Write, filelock.SharedFirst, filelock.SharedBytes)
	return err == nil && !other.Held
}

// ignoreNoTransaction leaves out that nothing had begun.
func ignoreNoTransaction(err error) error {
	if err != nil && err.Error() == "cannot rollback - no transaction is active" {
		return nil
	}
	return err
}

// gates are those of all databases of a term.
type gates []*shutGate

// shutGates keeps local writers out of the databases at the end of a term, where
// fence-local says so and no child was stopped for it. One that cannot be shut
// is left open: what comes in is set aside later.
func (n *node) shutGates(ctx context.Context) gates {
	if !n.fencesWriters() {
		return nil
	}
	all := make(gates, len(n.databases))
	var group errgroup.Group
	for i, f := range n.databases {
		group.Go(func() error {
			if !hasContent(f.cfg.Path) || f.standing() == following {
				return nil // there is nothing, or it never became more than a copy
			}
			var err error
			if all[i], err = n.shutGate(ctx, f); err != nil {
				f.log.Warn("local writers are not kept out", "error", err)
			}
			return nil
		})
	}
	_ = group.Wait()
	return all
}

// fencesWriters tells whether local writers are to be kept out, and no child is
// stopped for it.
func (n *node) fencesWriters() bool {
	return n.cfg.HA.FenceLocal == fenceLock && (len(n.app.command) == 0 || n.cfg.HA.ExecRole != rolePrimary)
}

// shutGate keeps writers out of a database.
func (n *node) shutGate(ctx context.Context, f *followed) (*shutGate, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.cfg.HA.Lease.Times.Stop)
	defer cancel()
	return shut(ctx, f.cfg.Path)
}

// Open lets writers in again.
func (g gates) Open() error {
	var errs []error
	for _, gate := range g {
		errs = append(errs, gate.Open())
	}
	return errors.Join(errs...)
}

// shutBetween keeps local writers out from when capture has let go of the
// databases until it is settled how they stand, which may take a while.
func (n *node) shutBetween(ctx context.Context) {
	for i, gate := range n.shutGates(ctx) {
		n.databases[i].between = gate
	}
}
