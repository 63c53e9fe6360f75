package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/tidemark-io/tidemark/storage"
)

// lookFirst is the body size above which a condition is looked at before the
// body is sent: a service that refuses a long body may reset the connection
// instead of answering, and some look at conditions of short bodies only.
const lookFirst = 256 << 10

// Put sends a body up to the part size in one request, a larger one in parts.
func (b *Bucket) Put(ctx context.Context, key string, body io.ReadSeeker, cond storage.Condition) (storage.Object, error) {
	object, err := b.put(ctx, key, body, cond)
	if err != nil {
		return storage.Object{}, fmt.Errorf("put %s/%s: %w", b, key, err)
	}
	object.Key = key
	if cond.ETag == "" { // what replaces an object is awaited, as a lease is
		b.abortLeft(ctx)
	}
	return object, nil
}

func (b *Bucket) put(ctx context.Context, key string, body io.ReadSeeker, cond storage.Condition) (storage.Object, error) {
	full, err := b.key(key)
	if err := errors.Join(ctx.Err(), err); err != nil {
		return storage.Object{}, err
	}
	if cond.Absent && cond.ETag != "" {
		return storage.Object{}, errors.New("condition names both absence and an ETag")
	}
	if cond != (storage.Condition{}) && b.provider.noConditions != "" {
		return storage.Object{}, errors.New(b.provider.noConditions + ", and writing here needs them: use another service")
	}
	src, err := newSource(body)
	if err != nil {
		return storage.Object{}, err
	}
	if src.size > lookFirst {
		if err := b.look(ctx, full, cond); err != nil {
			return storage.Object{}, err
		}
	}
	if src.size > int64(b.config.PartSize) {
		return b.putParts(ctx, full, src, cond)
	}
	return b.putWhole(ctx, full, src, cond)
}

// look refuses a condition that does not hold already.
func (b *Bucket) look(ctx context.Context, full string, cond storage.Condition) error {
	if cond == (storage.Condition{}) {
		return nil
	}
	object, err := b.head(ctx, full)
	absent := errors.Is(err, storage.ErrNotFound)
	switch {
	case absent && cond.ETag != "":
		return fmt.Errorf("%w: no object to replace", storage.ErrPrecondition)
	case absent:
		return nil
	case err != nil:
		return fmt.Errorf("look at the object: %w", err)
	case cond.Absent:
		return fmt.Errorf("%w: the object exists", storage.ErrPrecondition)
	case object.ETag != cond.ETag:
		return fmt.Errorf("%w: the object changed", storage.ErrPrecondition)
	}
	return nil
}

func (b *Bucket) putWhole(ctx context.Context, full string, src *source, cond storage.Condition) (storage.Object, error) {
	in := &sdk.PutObjectInput{Bucket: &b.config.Bucket, Key: &full, ContentLength: &src.size}
	in.IfNoneMatch, in.IfMatch = conditions(cond)
	var out *sdk.PutObjectOutput
	err := b.brief(ctx, func() (err error) {
		in.Body = src.section(0, src.size)
		out, err = b.client.PutObject(ctx, in)
		return errOf(err, src)
	})
	if err != nil {
		return storage.Object{}, refused(err, cond)
	}
	if aws.ToString(out.ETag) == "" {
		return storage.Object{}, errors.New("the reply has no ETag: the object may not be stored")
	}
	return storage.Object{Size: src.size, ETag: *out.ETag, ModTime: serverTime(out.ResultMetadata)}, nil
}

// conditions are the values of If-None-Match and If-Match.
func conditions(cond storage.Condition) (noneMatch, match *string) {
	if cond.Absent {
		noneMatch = aws.String("*")
	}
	if cond.ETag != "" {
		match = &cond.ETag
	}
	return noneMatch, match
}

// refused puts "not found" in terms of the condition: If-Match on a key that
// does not exist did not hold. For any other write it says nothing certain.
func refused(err error, cond storage.Condition) error {
	switch {
	case !errors.Is(err, storage.ErrNotFound):
		return err
	case cond.ETag != "":
		return fmt.Errorf("%w: no object to replace", storage.ErrPrecondition)
	}
	return errors.New("the service answered that the key does not exist, as when it is deleted at this moment")
}

// statusOf returns the HTTP status of a reply.
func statusOf(metadata middleware.Metadata) int {
	if r, ok := awsmiddleware.GetRawResponse(metadata).(*smithyhttp.Response); ok {
		return r.StatusCode
	}
	return 0
}

// serverTime is the service's clock, as far as it tells.
func serverTime(metadata middleware.Metadata) time.Time {
	at, _ := awsmiddleware.GetServerTime(metadata)
	return at
}
