package s3

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/tidemark-io/tidemark/storage"
)

var (
	// errNoCredentials says that the chain has none, or none it can use.
	errNoCredentials = errors.New("no usable credentials")
	// errUnclear says that a refused condition may have been broken by an
	// earlier attempt of the same request, whose reply was lost.
	errUnclear = errors.New("an attempt whose reply was lost may have stored the object")
)

// reply is what a service said in an error.
type reply struct {
	status  int    // 0: it said nothing
	code    string // empty: it gave a status only, as for HEAD, or is no S3 service
	message string
}

func replyOf(err error) reply {
	var r reply
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.Response != nil {
		r.status = response.HTTPStatusCode()
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		r.code = api.ErrorCode()
		r.message = strings.Join(strings.Fields(api.ErrorMessage()), " ")
	}
	// Without an S3 error the SDK makes a code of the status.
	if r.code == strings.ReplaceAll(http.StatusText(r.status), " ", "") && r.message == http.StatusText(r.status) {
		r.code = ""
	}
	return r
}

func (r reply) String() string {
	if r.code == "" {
		return fmt.Sprintf("HTTP %d", r.status)
	}
	return fmt.Sprintf("%s: %.300s (HTTP %d)", r.code, r.message, r.status)
}

// translate turns an error of the SDK into one of this product. It is the
// only place that does.
func translate(err error) error {
	r := replyOf(err)
	switch {
	case errors.Is(err, errBody), errors.Is(err, storage.ErrNotFound):
		return err
	case r.code == "NoSuchBucket":
		return fmt.Errorf("the bucket does not exist at this endpoint: %s", r)
	case r.status == http.StatusNotFound && r.code == "NoSuchKey":
		return storage.ErrNotFound
	case isPrecondition(r):
		return fmt.Errorf("%w: %s", storage.ErrPrecondition, r)
	case r.code == "RequestTimeTooSkewed":
		return fmt.Errorf("%w: %w: %s", storage.ErrForbidden, storage.ErrSkewed, r)
	case r.status == http.StatusForbidden, r.status == http.StatusUnauthorized, isStale(r.code):
		return fmt.Errorf("%w: %s", storage.ErrForbidden, r)
	case r.status == http.StatusMovedPermanently, r.code == "AuthorizationHeaderMalformed":
		return fmt.Errorf("the bucket is in another region or at another endpoint: %s", r)
	case r.code != "":
		return errors.New(r.String())
	case r.status >= http.StatusMultipleChoices:
		return fmt.Errorf("the endpoint answered HTTP %d without an S3 error: is there an S3 service?", r.status)
	}
	return innermost(err)
}

// innermost drops what the SDK and net/http put around a cause.
func innermost(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	var operation *smithy.OperationError
	if errors.As(err, &operation) {
		return operation.Err
	}
	return err
}

func isPrecondition(r reply) bool {
	return r.status == http.StatusPreconditionFailed || r.code == "PreconditionFailed"
}

// verdict is what an error means for the next attempt.
type verdict struct {
	again   bool // worth another attempt
	slow    bool // the service asks for less
	stale   bool // the credentials are to be read again
	unclear bool // the request may have been carried out all the same
}

func judge(err error) verdict {
	r := replyOf(err)
	v := verdict{stale: isStale(r.code)}
	switch r.code {
	case "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestTimeTooSkewed", "RequestTimeout",
		"ConditionalRequestConflict", "OperationAborted":
		v.again = true
		return v
	case "SlowDown", "Throttling", "ThrottlingException", "TooManyRequests", "RequestLimitExceeded":
		v.again, v.slow, v.unclear = true, true, r.status >= 500
		return v
	case "InternalError", "ServiceUnavailable":
		return verdict{again: true, unclear: true}
	}
	switch r.status {
	case 0, http.StatusOK, http.StatusPartialContent:
		v.again = !isFinal(err)
		v.unclear = v.again && !neverSent(err)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		v.again, v.slow, v.unclear = true, true, true
	case http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		v.again, v.unclear = true, true
	}
	return v
}

// isStale says that fresh credentials may help.
func isStale(code string) bool {
	switch code {
	case "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken", "InvalidAccessKeyId",
		"SignatureDoesNotMatch", "XAdminUserNotFound": // the last is versitygw's
		return true
	}
	return false
}

// isFinal says that no reply came, nor would to another attempt.
func isFinal(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate) || errors.Is(err, errNoCredentials) || errors.Is(err, errBody) || errors.Is(err, storage.ErrNotFound)
}

// neverSent says that no connection was made.
func neverSent(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial"
}
