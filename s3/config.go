package s3

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/tidemark-io/tidemark/storage"
)

// Limits of S3's multipart uploads.
const (
	minPartSize = 5 << 20
	maxPartSize = 5 << 30
	maxParts    = 10_000
)

// Config says where the bucket is and how to speak to it. Region, credentials
// and endpoint left empty come from the standard AWS environment, profile
// and role.
type Config struct {
	Bucket          string        `yaml:"bucket,omitempty"`
	Prefix          string        `yaml:"path,omitempty"`
	Endpoint        string        `yaml:"endpoint,omitempty"` // URL with its scheme; empty: AWS
	Region          string        `yaml:"region,omitempty"`
	ForcePathStyle  *bool         `yaml:"force-path-style,omitempty"` // nil: yes for an endpoint that is not AWS
	AccessKeyID     string        `yaml:"access-key-id,omitempty"`
	SecretAccessKey string        `yaml:"secret-access-key,omitempty"`
	SessionToken    string        `yaml:"session-token,omitempty"`
	PartSize        Size          `yaml:"part-size,omitempty"`    // larger bodies are sent in parts of this size
	Concurrency     int           `yaml:"concurrency,omitempty"`  // parts of one body under way at a time
	IdleTimeout     time.Duration `yaml:"idle-timeout,omitempty"` // a connection silent for so long is given up
	Retry           Retry         `yaml:"-"`
}

// DefaultConfig has every default that does not depend on another setting.
func DefaultConfig() Config {
	return Config{PartSize: 16 << 20, Concurrency: 4, IdleTimeout: 30 * time.Second}
}

// WithDefaults fills in the defaults of the fields that are zero.
func (c Config) WithDefaults() Config {
	d := DefaultConfig()
	c.PartSize = cmp.Or(c.PartSize, d.PartSize)
	c.Concurrency = cmp.Or(c.Concurrency, d.Concurrency)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, d.IdleTimeout)
	return c
}

// Size is a number of bytes, written like "16MiB" or "16MB".
type Size int64

// UnmarshalText reads a size with or without a unit.
func (s *Size) UnmarshalText(text []byte) error {
	n, err := humanize.ParseBytes(string(text))
	if err != nil || n > maxPartSize {
		return fmt.Errorf("size %q: want bytes up to 5GiB, such as 16MiB", text)
	}
	*s = Size(n)
	return nil
}

// MarshalText writes the size so that UnmarshalText reads the same number.
func (s Size) MarshalText() ([]byte, error) {
	if text := strings.ReplaceAll(s.String(), " ", ""); s.same(text) {
		return []byte(text), nil
	}
	return strconv.AppendInt(nil, int64(s), 10), nil
}

func (s Size) same(text string) bool {
	var back Size
	return back.UnmarshalText([]byte(text)) == nil && back == s
}

// String writes the size with a unit.
func (s Size) String() string { return humanize.IBytes(uint64(max(s, 0))) }

var bucketName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$`)

// Validate checks the fields and their relations, defaults filled in. It is part
// of Open.
func (c Config) Validate() error {
	errs := []error{checkBucket(c.Bucket)}
	if c.Prefix != "" {
		if err := storage.CheckKey(c.Prefix); err != nil {
			errs = append(errs, fmt.Errorf("path: %w", err))
		}
	}
	if c.Endpoint != "" {
		errs = append(errs, c.checkEndpoint())
	}
	if (c.AccessKeyID == "") != (c.SecretAccessKey == "") {
		errs = append(errs, errors.New("access-key-id and secret-access-key belong together: set both, or neither to use the AWS environment"))
	}
	if c.SessionToken != "" && c.AccessKeyID == "" {
		errs = append(errs, errors.New("session-token needs access-key-id and secret-access-key"))
	}
	return errors.Join(append(errs, c.ValidateTransfer())...)
}

// ValidateTransfer checks the fields that may be shared by several buckets:
// part size, concurrency and idle timeout.
func (c Config) ValidateTransfer() error {
	var errs []error
	if c.PartSize < minPartSize || c.PartSize > maxPartSize {
		errs = append(errs, fmt.Errorf("part-size %s: S3 takes 5 MiB to 5 GiB", c.PartSize))
	}
	if c.Concurrency < 1 || c.Concurrency > 64 {
		errs = append(errs, fmt.Errorf("concurrency %d: want 1 to 64", c.Concurrency))
	}
	if c.IdleTimeout < time.Second/10 {
		errs = append(errs, fmt.Errorf("idle-timeout %s: want at least 100ms", c.IdleTimeout))
	}
	return errors.Join(errs...)
}

func checkBucket(name string) error {
	switch {
	case name == "":
		return errors.New("no bucket: write s3://BUCKET/PREFIX, or set bucket")
	case name == "localhost" || net.ParseIP(name) != nil:
		return fmt.Errorf("bucket %q is a host: write s3://BUCKET/PREFIX?endpoint=http://%s", name, name)
	case !bucketName.MatchString(name):
		return fmt.Errorf("bucket %q: a name has 3 to 63 letters, digits, dots and hyphens", name)
	}
	return nil
}

// checkEndpoint also guards against an endpoint that repeats the bucket.
func (c Config) checkEndpoint() error {
	endpoint := c.Endpoint
	if !strings.HasPrefix(endpoint, "http://") && !strings.HasPrefix(endpoint, "https://") {
		host, _, _ := strings.Cut(endpoint, "/")
		if strings.Contains(endpoint, "://") || strings.Contains(endpoint, "@") {
			return errors.New("endpoint: want a URL that starts with http:// or https://, without credentials")
		}
		return fmt.Errorf("endpoint %q has no scheme: write https://%s, or http://%s for a server without TLS", endpoint, host, host)
	}
	if strings.Contains(endpoint, "@") {
		return errors.New("endpoint: credentials do not belong in URLs; use AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Hostname() == "" {
		return fmt.Errorf("endpoint %q: not a URL such as https://host or http://host:9000", endpoint)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("endpoint %q: wants no query and no fragment", endpoint)
	}
	if strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/"+c.Bucket) {
		return fmt.Errorf("endpoint %q already names the bucket %s: leave it out of the endpoint", endpoint, c.Bucket)
	}
	if strings.HasPrefix(u.Host, c.Bucket+".") && c.ForcePathStyle == nil {
		return fmt.Errorf("endpoint %q already names the bucket %s: leave it out of the endpoint, "+
			"or, if the server is really called so, set force-path-style", endpoint, c.Bucket)
	}
	return nil
}
