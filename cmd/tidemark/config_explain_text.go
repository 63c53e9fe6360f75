package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
)

// print writes the explanation as a table and what its figures mean.
func (x explanation) print(w io.Writer) error {
	head := "Requests of a month of 30 days, if commits come all the time: at most"
	if x.CommitsADay > 0 {
		head = fmt.Sprintf("Requests of a month of 30 days with %s commits a day in each database: at most", humanize.Comma(x.CommitsADay))
	}
	if _, err := fmt.Fprintf(w, "%s\n\n", head); err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	rows := "DATABASE\tDATABASES\tREPLICA\tSYNC-INTERVAL\tPUT\tLIST\tGET\tDELETE\tUSD\n"
	for _, e := range append(x.Databases, x.Sum) {
		rows += fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.2f\n", e.Database, humanize.Comma(e.Databases),
			orDash(e.Replica), orDash(e.SyncInterval), humanize.Comma(e.Month.Put), humanize.Comma(e.Month.List),
			humanize.Comma(e.Month.Get), humanize.Comma(e.Month.Delete), e.USD)
	}
	if _, err := io.WriteString(table, rows); err != nil {
		return err
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, words, humanize.Comma(x.Sum.Start.List), humanize.Comma(x.Sum.Start.Get), reply, proofFiles, pricePut, priceGet); err != nil {
		return err
	}
	return x.Lease.print(w)
}

const words = `
Idle    0 requests: once all is merged and expired, nothing is sent and nothing is asked.
Start   each start of the sidecar asks where the replicas end: here %s LIST (one for each 1,000
        objects of a replica, one for each bucket) and up to %s GET. A database that is new to its
        replica is uploaded once, in one PUT or in parts of part-size.
PUT     one for each upload (above part-size one for each part, and two). One upload of a database
        is under way at a time, and what is committed meanwhile goes together into the next one.
        sync-interval is the least time between two uploads, so a month has no more of them than
        fit; with 0s it is one for each commit, and no more than fit if each takes %s.
        Then one for each merged file, at most one an interval of each of the levels, and one for
        each snapshot. Fewer or longer levels and a longer sync-interval cost less.
GET     one for each file that is merged and has no copy here, and up to %d each verify-interval.
LIST    one for each 1,000 objects of the replica before files are deleted, every quarter of
        l0-retention while there is something to delete.
DELETE  one for each 1,000 files; none with retention: external.
USD     with %g for 1,000 PUT or LIST and %g for 1,000 GET, the prices of S3 Standard in
        us-east-1, as an example; without storage and traffic. A directory has no requests.
`
