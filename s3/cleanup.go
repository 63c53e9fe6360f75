package s3

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
)

// uploadAge is how long a multipart upload may be under way.
const uploadAge = 24 * time.Hour

// CleanUploads aborts the multipart uploads that began more than a day ago: a
// killed process leaves its parts on the service, unseen but paid for. It
// touches what is below one of parts, prefixes in the bucket as storage.Under
// takes them; without parts, all below the bucket's own prefix. However many
// parts, one listing finds them.
func (b *Bucket) CleanUploads(ctx context.Context, parts ...string) error {
	own := ownership(b.base(), parts)
	in := &sdk.ListMultipartUploadsInput{Bucket: &b.config.Bucket, Prefix: aws.String(common(own))}
	var errs []error
	for {
		var page *sdk.ListMultipartUploadsOutput
		err := b.try(ctx, func() (err error) {
			page, err = b.client.ListMultipartUploads(ctx, in)
			return err
		})
		if err != nil {
			return fmt.Errorf("clean uploads of %s: %w", b, errors.Join(append(errs, err)...))
		}
		for _, u := range page.Uploads {
			if time.Since(aws.ToTime(u.Initiated)) < uploadAge || !owned(own, aws.ToString(u.Key)) {
				continue
			}
			if err := b.abort(ctx, *u.Key, u.UploadId); err != nil {
				errs = append(errs, fmt.Errorf("abort upload of %s: %w", *u.Key, err))
			}
		}
		// Markers grow, so a service that repeats one has no more to tell.
		if !aws.ToBool(page.IsTruncated) || aws.ToString(page.NextKeyMarker) <= aws.ToString(in.KeyMarker) &&
			aws.ToString(page.NextUploadIdMarker) == aws.ToString(in.UploadIdMarker) {
			return errors.Join(errs...)
		}
		in.KeyMarker, in.UploadIdMarker = page.NextKeyMarker, page.NextUploadIdMarker
	}
}

// ownership is the set of what keys of ours begin with: "" or up to a slash.
func ownership(base string, parts []string) map[string]bool {
	own := map[string]bool{}
	for _, part := range parts {
		if part = strings.Trim(part, "/"); part != "" {
			part += "/"
		}
		own[base+part] = true
	}
	if len(parts) == 0 {
		own[base] = true
	}
	return own
}

// owned tells whether a key is below one of own.
func owned(own map[string]bool, key string) bool {
	for i := range len(key) {
		if (i == 0 || key[i-1] == '/') && own[key[:i]] {
			return true
		}
	}
	return false
}

// common is what all keys of ours begin with.
func common(own map[string]bool) string {
	shared, first := "", true
	for prefix := range own {
		if first {
			shared, first = prefix, false
		}
		for !strings.HasPrefix(prefix, shared) {
			shared = shared[:len(shared)-1]
		}
	}
	return strings.ToValidUTF8(shared, "")
}
