package main

import (
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/tidemark-io/tidemark/replica"
)

// restoreOutput tells how a restore ended.
type restoreOutput struct {
	stdout, stderr io.Writer
	json           bool
}

// restoreReport is the JSON form.
type restoreReport struct {
	Restored bool     `json:"restored"`
	Reason   string   `json:"reason,omitempty"` // why nothing was restored
	Path     string   `json:"path"`
	Replica  string   `json:"replica"`
	Position Position `json:"position,omitzero"`
	PageSize uint32   `json:"page_size,omitempty"`
	Pages    uint32   `json:"pages,omitempty"`
	Files    int      `json:"files,omitempty"`
	Bytes    int64    `json:"bytes_read,omitempty"`
	Seconds  float64  `json:"seconds,omitempty"`
}

// nothing says why there was nothing to do.
func (o *restoreOutput) nothing(p restoring, reason string) error {
	if o.json {
		return printJSON(o.stdout, restoreReport{Reason: reason, Path: p.options.Path, Replica: p.place.String()})
	}
	_, err := fmt.Fprintf(o.stdout, "nothing restored to %s: %s\n", p.options.Path, reason)
	return err
}

func (o *restoreOutput) done(p restoring, r replica.RestoreResult) error {
	if o.json {
		return printJSON(o.stdout, restoreReport{
			Restored: true, Path: p.options.Path, Replica: p.place.String(), Position: position(r.Pos),
			PageSize: r.PageSize, Pages: r.Pages, Files: r.Files, Bytes: r.Bytes, Seconds: r.Duration.Seconds(),
		})
	}
	_, err := fmt.Fprintf(o.stdout, "restored %s at transaction %d: %d pages of %d bytes from %d files (%s read) in %s\n",
		p.options.Path, r.Pos.TXID, r.Pages, r.PageSize, r.Files, humanize.IBytes(uint64(r.Bytes)), r.Duration.Round(time.Millisecond))
	return err
}
