package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/storage"
)

// How long an upload that failed is tried to be aborted, and one that was given
// up: who ends a process waits for it.
const (
	abortTimeout = 15 * time.Second
	abandonTime  = 2 * time.Second
)

// upload is one multipart upload.
type upload struct {
	b    *Bucket
	full string
	id   *string
}

// putParts stores a body in parts. Whatever goes wrong, the upload is aborted,
// at the latest with the next write that succeeds; what a process that ends
// before leaves behind, CleanUploads finds later.
func (b *Bucket) putParts(ctx context.Context, full string, src *source, cond storage.Condition) (_ storage.Object, err error) {
	u := &upload{b: b, full: full}
	err = b.brief(ctx, func() error {
		out, err := b.client.CreateMultipartUpload(ctx, &sdk.CreateMultipartUploadInput{Bucket: &b.config.Bucket, Key: &full})
		if err == nil {
			u.id = out.UploadId
		}
		return err
	})
	if err == nil && aws.ToString(u.id) == "" {
		err = errors.New("the reply has no upload ID")
	}
	if err != nil {
		return storage.Object{}, fmt.Errorf("begin upload: %w", err)
	}
	defer func() {
		if err != nil {
			u.abort(ctx)
		}
	}()
	parts, err := u.parts(ctx, src)
	if err != nil {
		return storage.Object{}, err
	}
	object, err := u.complete(ctx, parts, cond)
	object.Size = src.size
	return object, err
}

// parts sends all parts, some of them at a time where the body allows it.
func (u *upload) parts(ctx context.Context, src *source) ([]types.CompletedPart, error) {
	size := partSize(src.size, int64(u.b.config.PartSize))
	parts := make([]types.CompletedPart, (src.size+size-1)/size)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(u.b.config.Concurrency)
	if src.at == nil {
		group.SetLimit(1)
	}
	for i := range parts {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() (err error) {
			offset := int64(i) * size
			parts[i], err = u.part(groupCtx, src, int32(i+1), offset, min(size, src.size-offset))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return parts, context.Cause(ctx)
}

func (u *upload) part(ctx context.Context, src *source, number int32, offset, size int64) (types.CompletedPart, error) {
	in := &sdk.UploadPartInput{Bucket: &u.b.config.Bucket, Key: &u.full, UploadId: u.id, PartNumber: &number, ContentLength: &size}
	var out *sdk.UploadPartOutput
	err := u.b.persist(ctx, func() (err error) {
		in.Body = src.section(offset, size)
		out, err = u.b.client.UploadPart(ctx, in)
		return errOf(err, src)
	})
	if err == nil && aws.ToString(out.ETag) == "" {
		err = errors.New("the reply has no ETag")
	}
	if err != nil {
		return types.CompletedPart{}, fmt.Errorf("part %d: %w", number, err)
	}
	return types.CompletedPart{ETag: out.ETag, PartNumber: &number}, nil
}

// partSize grows with bodies that would need too many parts.
func partSize(size, want int64) int64 {
	return max(want, (size+maxParts-1)/maxParts)
}

func (u *upload) complete(ctx context.Context, parts []types.CompletedPart, cond storage.Condition) (storage.Object, error) {
	in := &sdk.CompleteMultipartUploadInput{
		Bucket: &u.b.config.Bucket, Key: &u.full, UploadId: u.id,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	}
	in.IfNoneMatch, in.IfMatch = conditions(cond)
	var out *sdk.CompleteMultipartUploadOutput
	err := u.b.persist(ctx, func() (err error) {
		out, err = u.b.client.CompleteMultipartUpload(ctx, in, u.b.whilePatient)
		return err
	})
	if err != nil {
		return storage.Object{}, fmt.Errorf("complete upload: %w", refused(err, cond))
	}
	if aws.ToString(out.ETag) == "" {
		return storage.Object{}, errors.New("complete upload: the reply has no ETag: the object may not be stored")
	}
	return storage.Object{ETag: *out.ETag, ModTime: serverTime(out.ResultMetadata)}, nil
}

// abort works on a context of its own, as the upload's may have ended. It asks
// again whatever is answered, unless that is a refusal or nobody is there, and
// remembers an upload that it could not abort. Its error would hide the one that
// matters.
func (u *upload) abort(ctx context.Context) {
	limit := abortTimeout
	if ctx.Err() != nil {
		limit = abandonTime
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	for n := 0; ; n++ {
		err := u.b.abort(ctx, u.full, u.id)
		if err == nil || errors.Is(err, storage.ErrForbidden) {
			return
		}
		if neverSent(err) || pause(ctx, wait(n, false)) != nil {
			u.b.left.add(u)
			return
		}
	}
}

// errNotAborted is an answer with another status than S3 has for an upload that
// is aborted: there may be an error in it.
var errNotAborted = errors.New("abort upload: the reply does not say that it is done")

func (b *Bucket) abort(ctx context.Context, full string, id *string) error {
	in := &sdk.AbortMultipartUploadInput{Bucket: &b.config.Bucket, Key: &full, UploadId: id}
	return b.try(ctx, func() error {
		out, err := b.client.AbortMultipartUpload(ctx, in)
		if r := replyOf(err); r.status == http.StatusNotFound && r.code == "NoSuchUpload" {
			return nil
		}
		if err == nil && statusOf(out.ResultMetadata) != http.StatusNoContent {
			return errNotAborted
		}
		return err
	})
}
