package main

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/tidemark-io/tidemark/s3"
)

// Replica says where the remote copy of one database is kept: a URL, or its
// parts.
type Replica struct {
	Type         string        `yaml:"type,omitempty"` // file or s3; empty: what the other keys say
	URL          string        `yaml:"url,omitempty"`
	SyncInterval time.Duration `yaml:"sync-interval"` // least time between two uploads; 0: none
	S3           s3.Config     `yaml:",inline"`       // its path is the directory where there is no bucket
	base         string        // place that the settings name, where this replica is one of several below it
}

// normalize makes paths absolute, without links, joins the two spellings of replica and
// fills in what is set for all replicas.
func (d *Database) normalize(shared Config) error {
	if d.Path != "" {
		path, err := expandHome(d.Path)
		if err != nil {
			return fmt.Errorf("path: %w", err)
		}
		d.Path = resolved(path)
	}
	if d.Dir != "" {
		dir, err := expandHome(d.Dir)
		if err != nil {
			return fmt.Errorf("dir: %w", err)
		}
		d.Dir = resolved(dir)
	}
	switch {
	case len(d.Replicas) > 1:
		return errors.New("replicas: only one replica for each database is supported yet")
	case len(d.Replicas) == 1 && d.Replica != (Replica{}):
		return errors.New("replicas: replica is given too; keep one of them")
	case len(d.Replicas) == 1:
		d.Replica, d.Replicas = d.Replicas[0], nil
	}
	var err error
	if d.compaction, err = shared.Compaction.of(d.Snapshot); err != nil {
		return err
	}
	if d.Replica.SyncInterval == 0 {
		d.Replica.SyncInterval = shared.SyncInterval
	}
	return d.Replica.complete(shared.S3)
}

// complete turns every way to name a place into the same fields.
func (r *Replica) complete(shared s3.Config) error {
	if r.URL != "" && r.S3.Bucket != "" {
		return errors.New("replica.url: bucket is given too; keep one of them")
	}
	if r.URL != "" && r.S3.Prefix != "" {
		return errors.New("replica.url: path is given too; keep one of them")
	}
	if err := r.chooseType(); err != nil {
		return fmt.Errorf("replica.%w", err)
	}
	if r.Type != typeS3 {
		return nil
	}
	if r.URL != "" {
		parsed, err := s3.ParseURL(withEndpoint(r.URL, cmp.Or(r.S3.Endpoint, shared.Endpoint)))
		if err != nil {
			return fmt.Errorf("replica.url: %w", err)
		}
		fill(&r.S3, parsed)
		r.URL = ""
	}
	if r.S3.Bucket == "" {
		r.S3.Bucket = shared.Bucket
	}
	shared.Bucket, shared.Prefix = "", ""
	if r.S3.AccessKeyID+r.S3.SecretAccessKey+r.S3.SessionToken != "" {
		shared.AccessKeyID, shared.SecretAccessKey, shared.SessionToken = "", "", ""
	}
	fill(&r.S3, shared)
	r.S3 = r.S3.WithDefaults()
	return nil
}

// fill sets the fields of c that are not set.
func fill(c *s3.Config, from s3.Config) {
	target, source := reflect.ValueOf(c).Elem(), reflect.ValueOf(from)
	for i := range target.NumField() {
		if target.Field(i).IsZero() {
			target.Field(i).Set(source.Field(i))
		}
	}
}
