package s3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
)

const (
	dialTimeout    = 10 * time.Second
	maxConnections = 256 // a request beyond waits for one to end
	idleKept       = 32  // idle connections kept for reuse
	patience       = 20  // times the idle timeout, for whilePatient
)

// connect gives b its client, and completes its configuration with what the
// environment says.
func (b *Bucket) connect(ctx context.Context) error {
	load := func(ctx context.Context) (aws.Config, error) { return loadAWS(ctx, b.config) }
	shared, err := load(ctx)
	if err != nil {
		return err
	}
	c, err := b.config.complete(sdk.NewFromConfig(shared).Options())
	if err != nil {
		return err
	}
	creds := newChain(load, shared.Credentials)
	b.config, b.creds = c, creds
	b.client = sdk.NewFromConfig(shared, func(o *sdk.Options) {
		o.Region, o.UsePathStyle = c.Region, *c.ForcePathStyle
		if c.Endpoint != "" {
			o.BaseEndpoint = &c.Endpoint
		}
		o.Credentials, o.HTTPSignerV4 = creds, creds
		o.Retryer = aws.NopRetryer{} // Bucket.try repeats requests itself
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.DisableLogOutputChecksumValidationSkipped = true
		// Frozen, they keep their timeouts: the SDK has defaults of its own.
		if client, ok := shared.HTTPClient.(*awshttp.BuildableClient); ok {
			o.HTTPClient = client.Freeze()
			b.patient = client.WithTransportOptions(silence(patience * c.IdleTimeout)).Freeze()
		}
	})
	return nil
}

// whilePatient is for the one request that a service may answer late: some put
// the parts of an upload together before they say a word.
func (b *Bucket) whilePatient(o *sdk.Options) { o.HTTPClient = b.patient }

func loadAWS(ctx context.Context, c Config) (aws.Config, error) {
	options := []func(*config.LoadOptions) error{
		config.WithHTTPClient(httpClient(c.IdleTimeout)),
		config.WithLogger(logging.Nop{}), // what matters comes back as an error
	}
	if c.Region != "" {
		options = append(options, config.WithRegion(c.Region))
	}
	if c.AccessKeyID != "" {
		static := credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.SessionToken)
		options = append(options, config.WithCredentialsProvider(static))
	}
	shared, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("load AWS settings: %w", err)
	}
	return shared, nil
}

// httpClient starts from the system's certificates; the SDK adds those of
// AWS_CA_BUNDLE to them.
func httpClient(idle time.Duration) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithReadTimeout(0).WithTransportOptions(silence(idle), func(t *http.Transport) {
		t.TLSHandshakeTimeout = dialTimeout
		t.MaxConnsPerHost = maxConnections
		t.MaxIdleConnsPerHost = idleKept
		// One connection a request: a stalled one holds up no other.
		t.ForceAttemptHTTP2 = false
		t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
		if pool, err := x509.SystemCertPool(); err == nil {
			t.TLSClientConfig.RootCAs = pool
		}
	})
}

// silence sets how long a connection may bring nothing.
func silence(limit time.Duration) func(*http.Transport) {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	return func(t *http.Transport) {
		t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &idleConn{Conn: conn, idle: limit}, nil
		}
		t.ResponseHeaderTimeout = limit
		t.IdleConnTimeout = limit
	}
}

// idleConn gives up when no byte moved in either direction for a while.
// Progress of a write moves the deadline of the read that waits for the
// reply, so a slow upload is not cut.
type idleConn struct {
	net.Conn
	idle time.Duration
}

func (c *idleConn) Read(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.idle)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *idleConn) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.idle)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// complete fills in what the AWS environment and the endpoint decide.
func (c Config) complete(options sdk.Options) (Config, error) {
	if c.Endpoint == "" && options.BaseEndpoint != nil {
		c.Endpoint = *options.BaseEndpoint
		if err := c.checkEndpoint(); err != nil {
			return c, fmt.Errorf("from AWS_ENDPOINT_URL or the AWS profile: %w", err)
		}
	}
	c.Endpoint = strings.TrimRight(c.Endpoint, "/")
	host := c.host()
	if c.Region == "" {
		c.Region = options.Region
	}
	if c.Region == "" && host != "" && !isAWS(host) {
		c.Region = providerOf(host).region
	}
	if c.Region == "" {
		return c, errors.New("no region: add ?region=... to the URL, or set region or AWS_REGION")
	}
	if c.ForcePathStyle == nil {
		// A name with dots does not fit the certificate of a virtual host.
		force := host != "" && !isAWS(host) || strings.Contains(c.Bucket, ".")
		c.ForcePathStyle = &force
	}
	return c, nil
}

// host is the endpoint's host name; empty: AWS.
func (c Config) host() string {
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
