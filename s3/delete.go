package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/storage"
)

const (
	deleteBatch    = 1000 // what S3 takes in one request
	deleteParallel = 8    // requests under way where there are no batches
)

// Delete removes objects in batches, or one by one where the service has no
// batches.
func (b *Bucket) Delete(ctx context.Context, keys ...string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete from %s: %w", b, err)
	}
	var errs []error
	full := make([]string, 0, len(keys))
	for _, key := range keys {
		name, err := b.key(key)
		if err != nil {
			errs = append(errs, fmt.Errorf("delete %s/%s: %w", b, key, err))
			continue
		}
		full = append(full, name)
	}
	for batch := range slices.Chunk(full, deleteBatch) {
		errs = append(errs, b.deleteSome(ctx, batch))
	}
	return errors.Join(errs...)
}

func (b *Bucket) deleteSome(ctx context.Context, batch []string) error {
	if len(batch) == 1 || b.single.Load() {
		return b.deleteEach(ctx, batch)
	}
	err := b.deleteBatch(ctx, batch)
	if errors.Is(err, errNoBatch) {
		b.single.Store(true)
		return b.deleteEach(ctx, batch)
	}
	return err
}

func (b *Bucket) deleteEach(ctx context.Context, batch []string) error {
	errs := make([]error, len(batch))
	var group errgroup.Group
	group.SetLimit(deleteParallel)
	for i, full := range batch {
		group.Go(func() error {
			err := b.try(ctx, func() error {
				_, err := b.client.DeleteObject(ctx, &sdk.DeleteObjectInput{Bucket: &b.config.Bucket, Key: &full})
				return err
			})
			if err != nil && !errors.Is(err, storage.ErrNotFound) {
				errs[i] = fmt.Errorf("delete s3://%s/%s: %w", b.config.Bucket, full, err)
			}
			return nil
		})
	}
	return errors.Join(group.Wait(), errors.Join(errs...))
}

// errNoBatch says that the service does not know DeleteObjects.
var errNoBatch = errors.New("no batch delete")

func (b *Bucket) deleteBatch(ctx context.Context, batch []string) error {
	ids := make([]types.ObjectIdentifier, len(batch))
	for i := range batch {
		ids[i].Key = &batch[i]
	}
	in := &sdk.DeleteObjectsInput{Bucket: &b.config.Bucket, Delete: &types.Delete{Objects: ids}}
	var out *sdk.DeleteObjectsOutput
	err := b.try(ctx, func() (err error) {
		out, err = b.client.DeleteObjects(ctx, in, withContentMD5)
		if isNoBatch(replyOf(err)) {
			out, err = nil, nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("delete %d objects from %s: %w", len(batch), b, err)
	}
	if out == nil {
		return errNoBatch
	}
	return b.unfinished(batch, out)
}

// unfinished joins the errors of a reply. A key that it does not name was not
// deleted: any XML, and no body at all, is a reply without errors to the SDK.
func (b *Bucket) unfinished(batch []string, out *sdk.DeleteObjectsOutput) error {
	var errs []error
	named := make(map[string]bool, len(batch))
	for _, e := range out.Errors {
		key, code := aws.ToString(e.Key), aws.ToString(e.Code)
		named[key] = true
		if code != "NoSuchKey" {
			errs = append(errs, b.keyError(key, code, aws.ToString(e.Message)))
		}
	}
	for _, d := range out.Deleted {
		named[aws.ToString(d.Key)] = true
	}
	for _, key := range batch {
		if !named[key] {
			errs = append(errs, b.keyError(key, "NoAnswer", "the reply does not say what became of it"))
		}
	}
	return errors.Join(errs...)
}

func (b *Bucket) keyError(full, code, message string) error {
	err := fmt.Errorf("delete s3://%s/%s: %s: %s", b.config.Bucket, full, code, message)
	if code == "AccessDenied" {
		return fmt.Errorf("%w: %w", storage.ErrForbidden, err)
	}
	return err
}

func isNoBatch(r reply) bool {
	return r.status == http.StatusNotImplemented || r.status == http.StatusMethodNotAllowed ||
		r.code == "NotImplemented" || r.code == "MethodNotAllowed"
}

// withContentMD5 sends the checksum every service knows in place of the SDK's
// CRC-32 headers.
func withContentMD5(o *sdk.Options) {
	o.APIOptions = append(slices.Clone(o.APIOptions), func(stack *middleware.Stack) error {
		_, setup := stack.Initialize.Remove("AWSChecksum:SetupInputContext")
		_, compute := stack.Finalize.Remove("AWSChecksum:ComputeInputPayloadChecksum")
		return errors.Join(setup, compute, smithyhttp.AddContentChecksumMiddleware(stack))
	})
}
