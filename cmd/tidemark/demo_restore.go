package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/demo"
)

// loseAndRestore deletes the catalog, restores it and compares.
func (d *demonstration) loseAndRestore(ctx context.Context) error {
	before, err := demo.Take(ctx, d.catalog)
	if err != nil {
		return err
	}
	for _, path := range []string{d.catalog, d.catalog + "-wal", d.catalog + "-shm", capture.StateDir(d.catalog)} {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	d.say("         database and local state deleted")
	begin := time.Now()
	out, err := exec.CommandContext(ctx, d.program, "restore", "-integrity-check", "full", "-o", d.catalog, d.bucket).CombinedOutput()
	if err != nil {
		return fmt.Errorf("demo restore: %w\n%s", err, out)
	}
	d.say("         restored in %s", time.Since(begin).Round(time.Millisecond))
	after, err := demo.Take(ctx, d.catalog)
	if err != nil {
		return err
	}
	return d.compare(before, after)
}

// leave says what stays behind, and removes the rest.
func (d *demonstration) leave() error {
	if d.elsewhere {
		d.say("left the replica at %s; remove its objects when you are done with them", withoutQuery(d.bucket))
	}
	switch {
	case !d.keep:
		return os.RemoveAll(d.dir)
	case d.elsewhere:
		d.say("kept %s: the catalog and the log of the sidecar", d.dir)
	default:
		d.say("kept %s: the catalog, its replica and the log of the sidecar", d.dir)
	}
	return nil
}

func (d *demonstration) compare(before, after demo.Picture) error {
	equal := true
	for _, row := range []struct {
		name      string
		want, got any
	}{
		{"integrity_check", "ok", after.Integrity},
		{"commits in the hash chain", before.Commits, after.Commits},
		{"first broken link (0: none)", int64(0), after.Broken},
		{"schema and rows (sha256)", before.Dump, after.Dump},
		{"pages (sha256)", before.Pages, after.Pages},
	} {
		verdict := "equal"
		if row.want != row.got {
			verdict, equal = fmt.Sprintf("DIFFERENT: lost %v", row.want), false
		}
		d.say("%-28s %-66v %s", row.name, row.got, verdict)
	}
	if !equal {
		return errors.New("demo: the restored database is not the lost one")
	}
	d.say("the restored database is equal to the lost one")
	return nil
}
