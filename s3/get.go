package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/tidemark-io/tidemark/storage"
)

// Get opens an object. When the connection breaks or falls silent, the body
// goes on over a new one, as long as that gets it anywhere and the object is
// the same.
func (b *Bucket) Get(ctx context.Context, key string, part storage.Range) (io.ReadCloser, storage.Object, error) {
	body, object, err := b.get(ctx, key, part)
	if err != nil {
		return nil, storage.Object{}, fmt.Errorf("get %s/%s: %w", b, key, err)
	}
	return body, object, nil
}

func (b *Bucket) get(ctx context.Context, key string, part storage.Range) (io.ReadCloser, storage.Object, error) {
	full, err := b.key(key)
	if err := errors.Join(ctx.Err(), err); err != nil {
		return nil, storage.Object{}, err
	}
	if part.Offset < 0 || part.Length < 0 {
		return nil, storage.Object{}, fmt.Errorf("range %d+%d: negative", part.Offset, part.Length)
	}
	first, object, err := b.open(ctx, full, part, nil)
	if errors.Is(err, errBeyond) {
		return b.beyond(ctx, full, key, part)
	}
	if err != nil {
		return nil, storage.Object{}, err
	}
	object.Key = key
	end := object.Size
	if part.Length > 0 && part.Length < object.Size-part.Offset {
		end = part.Offset + part.Length
	}
	reader := &body{conn: first, at: part.Offset, end: max(end, part.Offset), name: b.String() + "/" + key}
	reader.reopen = func(failures int) (io.ReadCloser, error) {
		if err := errors.Join(ctx.Err(), pause(ctx, wait(failures, false))); err != nil {
			return nil, err
		}
		rest := storage.Range{Offset: reader.at, Length: reader.end - reader.at}
		next, _, err := b.open(ctx, full, rest, &object.ETag)
		if errors.Is(err, storage.ErrPrecondition) {
			return nil, errors.New("the object changed while it was read")
		}
		return next, err
	}
	return reader, object, nil
}

// errBeyond says that a range starts at or after the end.
var errBeyond = errors.New("range beyond the end")

// errNoObject says that what came has none of the marks of an object, such as
// the page of a proxy that wants a login. A file that was put into the folder
// of a gateway has no ETag.
var errNoObject = errors.New("the reply is not an object: it has neither ETag nor time, or no length")

// open sends the request and returns a body that starts at part.Offset. With
// an ETag it goes on with an object that was read in part.
func (b *Bucket) open(ctx context.Context, full string, part storage.Range, etag *string) (io.ReadCloser, storage.Object, error) {
	in := &sdk.GetObjectInput{Bucket: &b.config.Bucket, Key: &full, Range: rangeHeader(part), IfMatch: etag}
	try := b.try
	if etag != nil {
		try = b.persist
	}
	var out *sdk.GetObjectOutput
	err := try(ctx, func() (err error) {
		out, err = b.client.GetObject(ctx, in)
		switch {
		case replyOf(err).status == http.StatusRequestedRangeNotSatisfiable:
			out, err = nil, nil
		case err == nil && (aws.ToString(out.ETag) == "" && out.LastModified == nil || out.ContentLength == nil && out.ContentRange == nil):
			err = errors.Join(errNoObject, out.Body.Close())
		}
		return err
	})
	if err != nil {
		return nil, storage.Object{}, err
	}
	if out == nil {
		return nil, storage.Object{}, errBeyond
	}
	object := storage.Object{ETag: aws.ToString(out.ETag), ModTime: aws.ToTime(out.LastModified), Size: aws.ToInt64(out.ContentLength)}
	object.Now = serverTime(out.ResultMetadata)
	if out.ContentRange == nil {
		// The whole object, although a part may have been asked for.
		if _, err := io.CopyN(io.Discard, out.Body, min(part.Offset, object.Size)); err != nil {
			return nil, object, errors.Join(fmt.Errorf("skip to byte %d: %w", part.Offset, err), out.Body.Close())
		}
		return out.Body, object, nil
	}
	start, size, err := contentRange(*out.ContentRange)
	if err != nil || start != part.Offset {
		return nil, object, errors.Join(fmt.Errorf("asked for bytes from %d, got %q", part.Offset, *out.ContentRange), out.Body.Close())
	}
	object.Size = size
	return out.Body, object, nil
}

// contentRange reads "bytes 5-9/10".
func contentRange(header string) (start, size int64, err error) {
	span, total, _ := strings.Cut(strings.TrimPrefix(header, "bytes "), "/")
	first, _, _ := strings.Cut(span, "-")
	start, err = strconv.ParseInt(first, 10, 64)
	if err != nil {
		return 0, 0, err
	}
	size, err = strconv.ParseInt(total, 10, 64)
	return start, size, err
}

// beyond answers a Get whose part has no bytes.
func (b *Bucket) beyond(ctx context.Context, full, key string, part storage.Range) (io.ReadCloser, storage.Object, error) {
	object, err := b.head(ctx, full)
	if err != nil {
		return nil, storage.Object{}, err
	}
	if object.Size > part.Offset {
		return nil, storage.Object{}, errors.New("the object changed while it was opened")
	}
	object.Key = key
	return http.NoBody, object, nil
}

// head describes an object. The reply cannot tell whether the key, the bucket
// or the service is missing, so it proves nothing beyond the next request.
func (b *Bucket) head(ctx context.Context, full string) (storage.Object, error) {
	var out *sdk.HeadObjectOutput
	err := b.brief(ctx, func() (err error) {
		out, err = b.client.HeadObject(ctx, &sdk.HeadObjectInput{Bucket: &b.config.Bucket, Key: &full})
		if replyOf(err).status == http.StatusNotFound {
			return storage.ErrNotFound
		}
		if err == nil && aws.ToString(out.ETag) == "" && out.LastModified == nil {
			return errNoObject
		}
		return err
	})
	if err != nil {
		return storage.Object{}, err
	}
	return storage.Object{Size: aws.ToInt64(out.ContentLength), ETag: aws.ToString(out.ETag), ModTime: aws.ToTime(out.LastModified)}, nil
}
