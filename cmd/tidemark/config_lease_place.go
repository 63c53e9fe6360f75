package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// leasePlace is where the lock of all databases is kept: beside the files of
// the only replica, else in the nearest place above all of them.
func (c Config) leasePlace() (location, error) {
	var root location
	for i, d := range c.Databases {
		place, err := d.Replica.locate()
		if err != nil {
			return location{}, fmt.Errorf("dbs[%d].replica.%w", i, err)
		}
		if i == 0 {
			root = place
		} else if root, err = root.above(place); err != nil {
			return location{}, err
		}
	}
	if root == (location{}) {
		return location{}, errors.New("dbs: no database is listed, so there is no place for a lease")
	}
	return root, nil
}

// above is the nearest place that both are in.
func (l location) above(other location) (location, error) {
	apart := fmt.Errorf("lease.url: %s and %s have no place above them in common; say where the lease is to be kept", l, other)
	if (l.dir == "") != (other.dir == "") || l.s3.Bucket != other.s3.Bucket || l.s3.Endpoint != other.s3.Endpoint {
		return location{}, apart
	}
	if l.dir != "" {
		l.dir = commonPath(filepath.ToSlash(l.dir), filepath.ToSlash(other.dir))
		l.base = l.dir
		if l.dir == "" {
			return location{}, apart
		}
		return l, nil
	}
	l.s3.Prefix = commonPath(l.s3.Prefix, other.s3.Prefix)
	l.base = l.s3.Prefix
	if l.s3.Prefix == "" {
		return location{}, apart
	}
	return l, nil
}

// commonPath is the longest beginning of whole elements that two paths share.
func commonPath(a, b string) string {
	inB := strings.Split(b, "/")
	var both []string
	for i, part := range strings.Split(a, "/") {
		if i == len(inB) || inB[i] != part {
			break
		}
		both = append(both, part)
	}
	return strings.Join(both, "/")
}
