package main

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/tidemark-io/tidemark/s3"
)

// errLeasePlace says what to do where no place follows from the replicas.
var errLeasePlace = errors.New("set it to where lock.json is to be kept, the same on all nodes")

// leasePlace is where the lease is kept: at lease.url, beside the files of the
// only replica, or in the nearest directory or prefix above all of them.
func (c Config) leasePlace() (location, error) {
	if c.HA.Lease.URL != "" {
		r := Replica{URL: c.HA.Lease.URL}
		if err := r.complete(c.S3); err != nil {
			return location{}, fmt.Errorf("lease.%s", strings.TrimPrefix(err.Error(), "replica."))
		}
		l, err := r.locate()
		if err != nil {
			return location{}, fmt.Errorf("lease.%w", err)
		}
		return l, nil
	}
	var all []location
	for i, d := range c.Databases {
		l, err := d.Replica.locate()
		if err != nil {
			return location{}, fmt.Errorf("dbs[%d].replica.%w", i, err)
		}
		all = append(all, l)
	}
	if len(all) == 0 {
		return location{}, fmt.Errorf("lease.url: no database is listed; %w", errLeasePlace)
	}
	common := all[0]
	for _, l := range all[1:] {
		var err error
		if common, err = common.above(l); err != nil {
			return location{}, err
		}
	}
	return common, nil
}

// above is the nearest place that holds two others.
func (l location) above(o location) (location, error) {
	apart := fmt.Errorf("lease.url: %s and %s have no place above them in common; %w", l, o, errLeasePlace)
	if l.dir != "" && o.dir != "" {
		dir := commonPath(l.dir, o.dir)
		if dir == "" || dir == string(filepath.Separator) {
			return location{}, apart
		}
		return location{dir: dir, base: dir}, nil
	}
	prefix := commonPath(l.s3.Prefix, o.s3.Prefix)
	if l.dir+o.dir != "" || !sameService(l.s3, o.s3) || prefix == "" {
		return location{}, apart
	}
	l.s3.Prefix, l.base = prefix, prefix
	return l, nil
}

// sameService tells whether two settings differ by their prefixes alone.
func sameService(a, b s3.Config) bool {
	style := func(c s3.Config) string {
		if c.ForcePathStyle == nil {
			return ""
		}
		return fmt.Sprint(*c.ForcePathStyle)
	}
	same := style(a) == style(b)
	a.Prefix, b.Prefix, a.ForcePathStyle, b.ForcePathStyle = "", "", nil, nil
	return same && a == b
}

// commonPath is the longest path, of whole elements, that two others begin with.
func commonPath(a, b string) string {
	for a != b {
		if len(a) < len(b) {
			a, b = b, a
		}
		up := path.Dir(a)
		if up == a || up == "." {
			return ""
		}
		a = up
	}
	return a
}
