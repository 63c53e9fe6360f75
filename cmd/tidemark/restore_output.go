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
	Restored bool      `json:"restored"`
	Reason   string    `json:"reason,omitempty"` // why nothing was restored
	Path     string    `json:"path"`
	Replica  string    `json:"replica"`
	Position Position  `json:"position,omitzero"`
	Time     time.Time `json:"time,omitzero"` // when the state was committed
	Next     Moment    `json:"next,omitzero"` // the nearest later state, where a time was asked for
	PageSize uint32    `json:"page_size,omitempty"`
	Pages    uint32    `json:"pages,omitempty"`
	Files    int       `json:"files,omitempty"`
	Bytes    int64     `json:"bytes_read,omitempty"`
	Seconds  float64   `json:"seconds,omitempty"`
}

// Moment is a transaction and when it was committed.
type Moment struct {
	TXID uint64    `json:"txid"`
	Time time.Time `json:"time,omitzero"`
}

func moment(p replica.Point) Moment { return Moment{uint64(p.TXID), p.Time} }

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
			Time: r.Time, Next: moment(r.Next), PageSize: r.PageSize, Pages: r.Pages, Files: r.Files, Bytes: r.Bytes, Seconds: r.Duration.Seconds(),
		})
	}
	_, err := fmt.Fprintf(o.stdout, "restored %s at transaction %d: %d pages of %d bytes from %d files (%s read) in %s\n",
		p.options.Path, r.Pos.TXID, r.Pages, r.PageSize, r.Files, humanize.IBytes(uint64(r.Bytes)), r.Duration.Round(time.Millisecond))
	if err == nil && !p.options.Time.IsZero() {
		_, err = fmt.Fprintln(o.stdout, around(r))
	}
	return err
}

// around says which states there are on both sides of a time.
func around(r replica.RestoreResult) string {
	text := fmt.Sprintf("transaction %d was committed at %s; ", r.Pos.TXID, showTime(r.Time))
	switch {
	case r.Next.TXID == 0:
		return text + "the replica has nothing later"
	case r.Next.TXID > r.Pos.TXID+1:
		return text + fmt.Sprintf("the next that can be restored is %d of %s, those between were merged", r.Next.TXID, showTime(r.Next.Time))
	}
	return text + fmt.Sprintf("the next is %d of %s", r.Next.TXID, showTime(r.Next.Time))
}

// showTime is a time as precise as files carry it.
func showTime(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z07:00") }
