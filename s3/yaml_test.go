package s3_test

import (
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/tidemark-io/tidemark/s3"
)

func TestConfigurationIsReadFromYAML(t *testing.T) {
	const text = `
bucket: lake
path: catalog/main
endpoint: http://minio:9000
region: eu-west-1
force-path-style: false
access-key-id: id
secret-access-key: key
part-size: 6MiB
concurrency: 2
idle-timeout: 5s
`
	c := s3.DefaultConfig()
	if err := yaml.NewDecoder(strings.NewReader(text), yaml.DisallowUnknownField()).Decode(&c); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if c.ForcePathStyle == nil || *c.ForcePathStyle {
		t.Error("force-path-style was not read")
	}
	c.ForcePathStyle = nil
	want := s3.Config{Bucket: "lake", Prefix: "catalog/main", Endpoint: "http://minio:9000", Region: "eu-west-1",
		AccessKeyID: "id", SecretAccessKey: "key", PartSize: 6 << 20, Concurrency: 2, IdleTimeout: 5 * time.Second}
	if c != want {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
	for text, want := range map[string]s3.Size{"part-size: 6291456": 6291456, "part-size: 10MB": 10_000_000} {
		c := s3.DefaultConfig()
		if err := yaml.Unmarshal([]byte(text), &c); err != nil || c.PartSize != want {
			t.Errorf("%s: got %d, %v", text, c.PartSize, err)
		}
	}
	if err := yaml.Unmarshal([]byte("part-size: big"), &c); err == nil {
		t.Error("part-size: big was read")
	}
}

func TestSizesAreWrittenAsTheyAreRead(t *testing.T) {
	for size, want := range map[s3.Size]string{16 << 20: "16MiB", 5 << 30: "5.0GiB", 10_000_000: "10000000", 6<<20 + 1: "6291457", 0: "0B"} {
		text, err := size.MarshalText()
		if err != nil || string(text) != want {
			t.Errorf("%d: got %q, %v; want %q", size, text, err, want)
		}
		var back s3.Size
		if err := back.UnmarshalText(text); err != nil || back != size {
			t.Errorf("%s: read as %d, %v; want %d", text, back, err, size)
		}
	}
}
