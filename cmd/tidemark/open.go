package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/s3"
	"github.com/tidemark-io/tidemark/storage"
)

// Kinds of buckets.
const (
	typeFile = "file"
	typeS3   = "s3"
)

// chooseType sets the type from the other fields and refuses what does not fit
// to it.
func (r *Replica) chooseType() error {
	if err := misspelled(r.URL); err != nil {
		return fmt.Errorf("url: %w", err)
	}
	kind := typeFile
	scheme, _, isURL := strings.Cut(r.URL, "://")
	switch {
	case isURL:
		kind = scheme
	case r.URL == "" && (r.S3.Bucket != "" || r.Type == typeS3):
		kind = typeS3
	}
	if r.Type != "" && r.Type != kind {
		if r.Type != typeFile && r.Type != typeS3 {
			return fmt.Errorf("type: %q is not supported; use file or s3", r.Type)
		}
		return fmt.Errorf("type: %s does not fit to the other keys, which say %s", r.Type, kind)
	}
	r.Type = kind
	if kind == typeFile && looksLikeURL(r.S3.Prefix) {
		return fmt.Errorf("path: %q is no path; give it as url, or write ./ before the name of a directory", withoutQuery(r.S3.Prefix))
	}
	return nil
}

// location is where a replica is kept.
type location struct {
	dir  string // absolute; empty: S3
	s3   s3.Config
	base string // the directory or prefix, or one above it, that the settings name
}

// locate returns the place that a completed replica names.
func (r Replica) locate() (location, error) {
	if r.Type == typeS3 {
		if err := r.S3.Validate(); err != nil {
			return location{}, err
		}
		return location{s3: r.S3, base: cmp.Or(r.base, r.S3.Prefix)}, nil
	}
	dir := r.S3.Prefix
	if r.URL != "" {
		var err error
		if dir, err = directory(r.URL); err != nil {
			return location{}, fmt.Errorf("url: %w", err)
		}
	}
	if dir == "" {
		return location{}, errors.New("url: it is missing; say where the replica is kept")
	}
	dir, err := expandHome(dir)
	dir = filepath.Clean(dir)
	return location{dir: dir, base: cmp.Or(r.base, dir)}, err
}

// directory takes file:///abs/dir and plain paths.
func directory(raw string) (string, error) {
	if !strings.HasPrefix(raw, "file://") {
		return raw, nil
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "", fmt.Errorf("%q is no URL", withoutQuery(raw))
	}
	if u.Host != "" || u.Path == "" {
		return "", fmt.Errorf("%q names no directory; three slashes begin its path: file:///abs/dir", withoutQuery(raw))
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%q: a directory has no query and no fragment; write %%3F and %%23 in names", withoutQuery(raw))
	}
	return u.Path, nil
}

// withEndpoint adds the endpoint to a URL that names none.
func withEndpoint(raw, endpoint string) string {
	_, query, _ := strings.Cut(raw, "?")
	values, err := url.ParseQuery(query)
	if endpoint == "" || err != nil || values.Has("endpoint") {
		return raw
	}
	if query == "" {
		return strings.TrimSuffix(raw, "?") + "?endpoint=" + url.QueryEscape(endpoint)
	}
	return raw + "&endpoint=" + url.QueryEscape(endpoint)
}

// String is the URL of the place, without settings and secrets.
func (l location) String() string {
	if l.dir != "" {
		return (&url.URL{Scheme: typeFile, Path: l.dir}).String()
	}
	return (&url.URL{Scheme: typeS3, Host: l.s3.Bucket, Path: "/" + l.s3.Prefix}).String()
}

// key tells places apart.
func (l location) key() string {
	if l.dir != "" {
		return l.String()
	}
	return l.String() + " at " + l.s3.Endpoint
}

// mayMake tells whether the directory may be made where it does not exist: with
// the one above it, but no further. Where more is missing, a disk is not mounted
// or the path is wrong, and what is written would be lost.
func (l location) mayMake() error {
	if l.dir == "" {
		return nil
	}
	dir := l.base
	for range 3 {
		switch _, err := os.Stat(dir); {
		case err == nil:
			return nil
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("replica %s: %w", l, err)
		}
		dir = filepath.Dir(dir)
	}
	parent := filepath.Dir(l.base)
	return fmt.Errorf("%s: neither %s nor the directory above it exists; mount the disk, correct the path, or make %s", l, parent, parent)
}

// open opens the bucket and tells how keys are laid out in it.
func (l location) open(ctx context.Context) (storage.Bucket, replica.Layout, error) {
	if l.dir != "" {
		b, err := storage.NewDir(l.dir)
		return b, replica.LayoutDir, err
	}
	b, err := s3.Open(ctx, l.s3)
	return b, replica.LayoutObject, err
}

// replica opens the replica that is kept there.
func (l location) replica(ctx context.Context, log *slog.Logger) (*replica.Replica, error) {
	b, layout, err := l.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", l, err)
	}
	return replica.New(b, layout, log), nil
}
