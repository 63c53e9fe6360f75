package main

import (
	"fmt"
	"io"

	"github.com/dustin/go-humanize"
)

// leaseEstimate is what a lease costs in a month beside all else, whether
// anybody writes or not.
type leaseEstimate struct {
	Lock     string   `json:"lock"`
	Primary  requests `json:"primary"`  // of the primary: its renewals
	Follower requests `json:"follower"` // of each follower: looks at the lock, and at each replica
	USD      float64  `json:"usd_primary"`
	Each     float64  `json:"usd_each_follower"`
}

// estimateLease is nil without a lease.
func (c Config) estimateLease() (*leaseEstimate, error) {
	if !c.HA.Lease.Enabled {
		return nil, nil
	}
	place, err := c.leasePlace()
	if err != nil {
		return nil, err
	}
	e := &leaseEstimate{Lock: place.String()}
	if place.dir == "" {
		e.Primary.Put = int64(month / c.HA.Lease.Times.Renew)
		e.Follower.Get = int64(month / c.HA.Lease.Times.Poll)
	}
	for _, d := range c.Databases {
		if d.Replica.Type == typeS3 {
			e.Follower.List += int64(month / c.HA.FollowInterval)
		}
	}
	e.USD, e.Each = e.Primary.usd(), e.Follower.usd()
	return e, nil
}

// print writes the estimate in words.
func (e *leaseEstimate) print(w io.Writer) error {
	if e == nil {
		return nil
	}
	_, err := fmt.Fprintf(w, `
Lease   the primary renews it, idle or not: %s PUT a month, USD %.2f (lease.renew).
        Each follower looks at it, %s GET (lease.poll), and at each replica, %s LIST
        (follow-interval): USD %.2f a month.
`, humanize.Comma(e.Primary.Put), e.USD, humanize.Comma(e.Follower.Get), humanize.Comma(e.Follower.List), e.Each)
	return err
}
