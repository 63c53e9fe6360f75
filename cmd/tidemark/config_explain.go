package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/discover"
)

const (
	month = 30 * 24 * time.Hour
	// reply is how long an upload is taken to last. There is one at a time for a
	// database, so that no more fit into a month.
	reply = 50 * time.Millisecond
	// Prices of 1000 requests in USD: S3 Standard in us-east-1, as an example.
	pricePut = 0.005 // and LIST
	priceGet = 0.0004
)

// requests are those to a bucket, by verb.
type requests struct {
	Put    int64 `json:"put"`
	List   int64 `json:"list"`
	Get    int64 `json:"get"`
	Delete int64 `json:"delete"`
}

func (r requests) plus(n int64, o requests) requests {
	return requests{Put: r.Put + n*o.Put, List: r.List + n*o.List, Get: r.Get + n*o.Get, Delete: r.Delete + n*o.Delete}
}

// usd is what they cost; deletes cost nothing.
func (r requests) usd() float64 {
	return (float64(r.Put+r.List)*pricePut + float64(r.Get)*priceGet) / 1000
}

// estimate is what one entry of the configuration costs.
type estimate struct {
	Database     string   `json:"database"`
	Databases    int64    `json:"databases"` // that the entry stands for
	Replica      string   `json:"replica"`
	SyncInterval string   `json:"sync_interval"`
	Start        requests `json:"each_start"`
	Month        requests `json:"month_at_most"`
	USD          float64  `json:"usd_a_month_at_most"`
}

// explanation is what a configuration costs.
type explanation struct {
	CommitsADay int64          `json:"commits_a_day,omitempty"` // of each database; 0: not known
	Idle        requests       `json:"idle"`
	Databases   []estimate     `json:"databases"`
	Sum         estimate       `json:"sum"`
	Lease       *leaseEstimate `json:"lease,omitempty"`
}

// explain estimates requests; commits of each database and day, 0: as many as
// can be.
func explain(c Config, commits int64) (explanation, error) {
	x := explanation{CommitsADay: commits, Sum: estimate{Database: "sum"}}
	buckets := map[string]bool{}
	for _, d := range c.Databases {
		e, err := d.estimate(commits)
		if err != nil {
			return x, err
		}
		if c.VerifyInterval > 0 && d.Replica.Type == typeS3 {
			e.Month = e.Month.plus(e.Databases*int64(month/c.VerifyInterval), requests{Get: proofFiles})
			e.USD = e.Month.usd()
		}
		x.Databases = append(x.Databases, e)
		x.Sum.Databases += e.Databases
		x.Sum.Start = x.Sum.Start.plus(1, e.Start)
		x.Sum.Month = x.Sum.Month.plus(1, e.Month)
		if d.Replica.Type == typeS3 {
			buckets[d.Replica.S3.Bucket+" at "+d.Replica.S3.Endpoint] = true
		}
	}
	x.Sum.Start.List += int64(len(buckets)) // of unfinished uploads
	x.Sum.USD = x.Sum.Month.usd()
	var err error
	x.Lease, err = c.estimateLease()
	return x, err
}

func (d Database) estimate(commits int64) (estimate, error) {
	place, err := d.Replica.locate()
	if err != nil {
		return estimate{}, err
	}
	e := estimate{Database: d.Path, Databases: 1, Replica: place.String(), SyncInterval: d.Replica.SyncInterval.String()}
	if d.Dir != "" {
		e.Database = filepath.Join(d.Dir, d.Pattern)
		if e.Databases, err = d.count(); err != nil {
			return estimate{}, fmt.Errorf("look for databases: %w", err)
		}
	}
	if place.dir != "" {
		return e, nil // files are no requests
	}
	e.Start = requests{}.plus(e.Databases, requests{List: 2, Get: 2})
	n := uploads(d.Replica.SyncInterval, commits)
	e.Month = requests{}.plus(e.Databases, requests{Put: n}.plus(1, upkeep(d.compaction, n)))
	e.USD = e.Month.usd()
	return e, nil
}

// uploads is how many a database has in a month at most.
func uploads(every time.Duration, commits int64) int64 {
	most := int64(month / max(every, reply))
	if commits > 0 {
		most = min(most, commits*int64(month/(24*time.Hour)))
	}
	return most
}

// count is how many databases there are in a directory now.
func (d Database) count() (int64, error) {
	var n counter
	err := discover.New(discover.Options{
		Root: d.Dir, Pattern: d.Pattern, Recursive: d.Recursive, Log: slog.New(slog.DiscardHandler),
	}, &n).Scan()
	if err != nil && !errors.Is(err, discover.ErrEmpty) {
		return 0, err
	}
	return int64(n), nil
}

// counter counts what is found.
type counter int64

func (*counter) InUse(string, fs.FileInfo) bool { return false }
func (n *counter) Add(string)                   { *n++ }
func (n *counter) Remove(string)                { *n-- }
