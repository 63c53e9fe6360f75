package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/s3"
	"github.com/tidemark-io/tidemark/storage"
)

// leaseArgument is the place of the lock that a URL or the configuration names.
func leaseArgument(c *cli.Context) (location, error) {
	args, err := arguments(c, 0, 1)
	if err != nil {
		return location{}, err
	}
	if len(args) == 1 {
		if explicitConfig(c) {
			return location{}, usagef("a URL is given as well as -config; keep one of them")
		}
		d, err := singleDatabase("database", args[0])
		if err != nil {
			return location{}, err
		}
		return d.Replica.locate()
	}
	cfg, err := loadConfig(c)
	if err != nil {
		return location{}, err
	}
	place, err := cfg.leasePlace()
	if err != nil {
		return location{}, usagef("%v", err)
	}
	return place, nil
}

// openLease opens the bucket of a lock. Nothing is sent twice: whether the
// first has arrived is found out by reading.
func (l location) openLease(ctx context.Context) (storage.Bucket, error) {
	l.s3.Retry = s3.Retry{Attempts: 1}
	b, _, err := l.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", l, err)
	}
	return b, nil
}
