// Package s3 is a storage.Bucket on S3 and what speaks its protocol. It is the
// only package that knows the AWS SDK: settings, retries, timeouts and errors
// of the service end here.
package s3

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/tidemark-io/tidemark/storage"
)

// Bucket is the part of an S3 bucket below a prefix. At most 256 connections
// are open at a time, those of bodies being read included.
type Bucket struct {
	client   *sdk.Client
	patient  aws.HTTPClient
	creds    *chain
	config   Config // complete
	provider provider
	single   atomic.Bool // the service refused DeleteObjects
	left     left
}

// Open checks the configuration and completes it from the AWS environment. It
// sends no request: whether the bucket answers shows at its first use.
func Open(ctx context.Context, c Config) (*Bucket, error) {
	c = c.WithDefaults()
	c.Prefix = strings.Trim(c.Prefix, "/")
	b := &Bucket{config: c}
	err := c.Validate()
	if err == nil {
		err = b.connect(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", b, err)
	}
	b.provider = providerOf(b.config.host())
	b.single.Store(b.provider.noBatch)
	return b, nil
}

// String returns the URL of bucket and prefix.
func (b *Bucket) String() string {
	if b.config.Prefix == "" {
		return "s3://" + b.config.Bucket
	}
	return "s3://" + b.config.Bucket + "/" + b.config.Prefix
}

// LogValue says where requests go, without secrets.
func (b *Bucket) LogValue() slog.Value {
	endpoint := b.config.Endpoint
	if endpoint == "" {
		endpoint = "AWS"
	}
	return slog.GroupValue(
		slog.String("endpoint", endpoint), slog.String("bucket", b.config.Bucket), slog.String("prefix", b.config.Prefix),
		slog.String("region", b.config.Region), slog.Bool("path_style", *b.config.ForcePathStyle))
}

// key is the object's key in the bucket.
func (b *Bucket) key(key string) (string, error) {
	if err := storage.CheckKey(key); err != nil {
		return "", err
	}
	full := b.base() + key
	return full, storage.CheckKey(full) // together they may be too long
}

// base is what every key of the bucket starts with.
func (b *Bucket) base() string {
	if b.config.Prefix == "" {
		return ""
	}
	return b.config.Prefix + "/"
}

// List asks for pages of up to 1000 objects as they are needed.
func (b *Bucket) List(ctx context.Context, prefix, after string) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		if err := b.list(ctx, prefix, after, yield); err != nil && !errors.Is(err, errStopped) {
			yield(storage.Object{}, fmt.Errorf("list %s/%s: %w", b, prefix, err))
		}
	}
}

// errStopped ends a listing whose consumer has seen enough.
var errStopped = errors.New("stopped")

func (b *Bucket) list(ctx context.Context, prefix, after string, yield func(storage.Object, error) bool) error {
	if err := errors.Join(ctx.Err(), storage.CheckPrefix(prefix)); err != nil {
		return err
	}
	in := sdk.ListObjectsV2Input{Bucket: &b.config.Bucket, Prefix: aws.String(b.base() + prefix)}
	if after != "" {
		in.StartAfter = aws.String(b.base() + after)
	}
	last := ""
	for {
		page, err := b.page(ctx, &in)
		if err != nil {
			return err
		}
		for _, item := range page.Contents {
			key, ok := strings.CutPrefix(aws.ToString(item.Key), b.base())
			if !ok || !strings.HasPrefix(key, prefix) || key < last {
				return fmt.Errorf("the service listed %q out of place", aws.ToString(item.Key))
			}
			last = key
			// A folder mark that a console made is no object of ours, and a
			// service may not know StartAfter.
			if key <= after || storage.CheckKey(key) != nil {
				continue
			}
			object := storage.Object{Key: key, Size: aws.ToInt64(item.Size), ETag: aws.ToString(item.ETag), ModTime: aws.ToTime(item.LastModified)}
			if !yield(object, nil) {
				return errStopped
			}
		}
		if !aws.ToBool(page.IsTruncated) {
			return nil
		}
		in.ContinuationToken = page.NextContinuationToken
	}
}

// page makes sure that a reply is a listing: the SDK takes any XML, and no
// body at all, for an empty one.
func (b *Bucket) page(ctx context.Context, in *sdk.ListObjectsV2Input) (page *sdk.ListObjectsV2Output, err error) {
	err = b.try(ctx, func() (err error) {
		page, err = b.client.ListObjectsV2(ctx, in)
		if err == nil && (page.Name == nil || page.IsTruncated == nil) {
			err = errNoListing // an error under status 200, for instance
		}
		return err
	})
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, errors.New("the service does not find the bucket")
	case err != nil:
		return nil, err
	case !*page.IsTruncated:
	case aws.ToString(page.NextContinuationToken) == "",
		aws.ToString(page.NextContinuationToken) == aws.ToString(in.ContinuationToken):
		return nil, errors.New("the listing goes on, but the service does not say where")
	}
	return page, nil
}

var errNoListing = errors.New("the reply is not a listing: is there an S3 service at the endpoint?")

// rangeHeader is the HTTP form of a part; empty: the whole object.
func rangeHeader(part storage.Range) *string {
	switch {
	case part == storage.Range{}:
		return nil
	case part.Length == 0 || part.Offset > math.MaxInt64-part.Length:
		return aws.String(fmt.Sprintf("bytes=%d-", part.Offset))
	}
	return aws.String(fmt.Sprintf("bytes=%d-%d", part.Offset, part.Offset+part.Length-1))
}
