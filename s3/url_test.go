package s3_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/s3"
)

func TestURLsAreRead(t *testing.T) {
	yes, no := true, false
	for raw, want := range map[string]s3.Config{
		"s3://bucket":               {Bucket: "bucket"},
		"s3://bucket/":              {Bucket: "bucket"},
		"s3://bucket/a/b/":          {Bucket: "bucket", Prefix: "a/b"},
		"s3://bucket/a%20b?region=": {Bucket: "bucket", Prefix: "a b"},
		"s3://bucket/p?endpoint=http://127.0.0.1:7070&region=us-east-1&force-path-style=true": {
			Bucket: "bucket", Prefix: "p", Endpoint: "http://127.0.0.1:7070", Region: "us-east-1", ForcePathStyle: &yes},
		"s3://bucket/p?endpoint=https%3A%2F%2Fhost%2F&forcePathStyle=false": {
			Bucket: "bucket", Prefix: "p", Endpoint: "https://host/", ForcePathStyle: &no},
		"s3://backup/p?endpoint=https://backup.host.com&force-path-style=true": {
			Bucket: "backup", Prefix: "p", Endpoint: "https://backup.host.com", ForcePathStyle: &yes},
		"s3://my.bucket/p?endpoint=https://s3.eu-west-1.amazonaws.com": {
			Bucket: "my.bucket", Prefix: "p", Endpoint: "https://s3.eu-west-1.amazonaws.com"},
		"s3://bucket?part-size=6MiB&concurrency=2&idleTimeout=5s": {
			Bucket: "bucket", PartSize: 6 << 20, Concurrency: 2, IdleTimeout: 5 * time.Second},
	} {
		got, err := s3.ParseURL(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if (got.ForcePathStyle == nil) != (want.ForcePathStyle == nil) || got.ForcePathStyle != nil && *got.ForcePathStyle != *want.ForcePathStyle {
			t.Errorf("%s: path style is wrong", raw)
		}
		got.ForcePathStyle, want.ForcePathStyle = nil, nil
		if got != want {
			t.Errorf("%s: got %+v, want %+v", raw, got, want)
		}
	}
}

func TestDoubtfulURLsAreRefusedWithAWayOut(t *testing.T) {
	for raw, hint := range map[string]string{
		"http://bucket/p":                                  "s3://BUCKET/PREFIX",
		"s3://":                                            "no bucket",
		"s3:///p":                                          "no bucket",
		"s3://host:9000/bucket/p":                          "?endpoint=http://host:9000",
		"s3://bucket.host:9000/p":                          "?endpoint=http://bucket.host:9000",
		"s3://host:/p":                                     "looks like a server",
		"s3://bucket.host.com/p":                           "endpoint=https://bucket.host.com",
		"s3://bucket.s3.amazonaws.com/p":                   "may be a server or a bucket",
		"s3://localhost/p":                                 "is a host",
		"s3://127.0.0.1/p":                                 "is a host",
		"s3://a/p":                                         "3 to 63",
		"s3://-bucket/p":                                   "3 to 63",
		"s3://bucket/a/../b":                               `".." element`,
		"s3://bucket/a//b":                                 "empty element",
		"s3://bucket/p#x":                                  "%23",
		"s3://bucket/p?endpoint=host:9000":                 "write https://host:9000",
		"s3://bucket/p?endpoint=127.0.0.1:9000/":           "write https://127.0.0.1:9000",
		"s3://bucket/p?endpoint=http://":                   "not a URL",
		"s3://bucket/p?endpoint=ftp://host":                "http:// or https://",
		"s3://bucket/p?endpoint=http://host:9000/bucket":   "already names the bucket",
		"s3://bucket/p?endpoint=http://host:9000/bucket/":  "already names the bucket",
		"s3://bucket/p?endpoint=https://bucket.host.com":   "already names the bucket",
		"s3://bucket/p?endpoint=http%3A%2F%2Fhost%3Fx%3D1": "no query",
		"s3://bucket/p?region=a&region=b":                  "2 times",
		"s3://bucket/p?regoin=a":                           `"regoin"`,
		"s3://bucket/p?force-path-style=maybe":             "maybe",
		"s3://bucket/p?part-size=1MB":                      "5 MiB",
		"s3://bucket/p?part-size=6GiB":                     "5GiB",
		"s3://bucket/p?part-size=-5":                       "part-size",
		"s3://bucket/p?concurrency=0":                      "1 to 64",
		"s3://bucket/p?idle-timeout=0":                     "idle-timeout",
		"s3://bucket/p?%zz":                                "query",
	} {
		if got, err := s3.ParseURL(raw); err == nil {
			t.Errorf("%s: got %+v, want an error", raw, got)
		} else if !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: error %q does not say %q", raw, err, hint)
		}
	}
}

func TestSecretsInURLsAreRefusedAndNotRepeated(t *testing.T) {
	for _, raw := range []string{
		"s3://AKIA:hush@bucket/p",
		"s3://AKIA:hu/hush@bucket/p",
		"s3://hush@bucket/p",
		"s3://bucket/p?access-key-id=hush",
		"s3://bucket/p?accessKeyId=hush",
		"s3://bucket/p?secret-access-key=hush",
		"s3://bucket/p?SecretAccessKey=hush",
		"s3://bucket/p?session_token=hush",
		"s3://bucket/p?X-Amz-Signature=hush",
		"s3://bucket/p?endpoint=http://AKIA:hush@host:9000",
		"s3://bucket/p?endpoint=AKIA:hush@host:9000",
	} {
		_, err := s3.ParseURL(raw)
		if err == nil {
			t.Errorf("%s: no error", raw)
		} else if strings.Contains(err.Error(), "hush") || !strings.Contains(err.Error(), "credentials") {
			t.Errorf("%s: error %q", raw, err)
		}
	}
}

func TestHalfCredentialsAreRefused(t *testing.T) {
	for _, set := range []func(*s3.Config){
		func(c *s3.Config) { c.AccessKeyID = "a" },
		func(c *s3.Config) { c.SecretAccessKey = "hush" },
		func(c *s3.Config) { c.SessionToken = "hush" },
	} {
		c := s3.DefaultConfig()
		c.Bucket = "bucket"
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		set(&c)
		if err := c.Validate(); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}
