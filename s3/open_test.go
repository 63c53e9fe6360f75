package s3_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/s3"
)

// resolved says where a bucket's requests would go.
func resolved(t *testing.T, b *s3.Bucket) string {
	t.Helper()
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("opened", "to", b)
	_, attributes, _ := strings.Cut(strings.TrimSpace(out.String()), "msg=opened ")
	return strings.ReplaceAll(attributes, "to.", "")
}

func TestEnvironmentCompletesTheURL(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(profile, []byte("[profile lake]\nregion = eu-north-1\nendpoint_url = https://lake.test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, url string
		env       []string
		want      string
	}{
		{"aws", "s3://bucket/p?region=eu-west-1", nil,
			`endpoint=AWS bucket=bucket prefix=p region=eu-west-1 path_style=false`},
		{"region from environment", "s3://bucket/p", []string{"AWS_REGION=eu-west-2"},
			`endpoint=AWS bucket=bucket prefix=p region=eu-west-2 path_style=false`},
		{"custom endpoint has defaults", "s3://bucket?endpoint=http://127.0.0.1:9000/", nil,
			`endpoint=http://127.0.0.1:9000 bucket=bucket prefix="" region=us-east-1 path_style=true`},
		{"endpoint from environment", "s3://bucket/p", []string{"AWS_ENDPOINT_URL=http://minio:9000"},
			`endpoint=http://minio:9000 bucket=bucket prefix=p region=us-east-1 path_style=true`},
		{"endpoint for S3 alone", "s3://bucket/p", []string{"AWS_ENDPOINT_URL=http://other", "AWS_ENDPOINT_URL_S3=http://minio:9000"},
			`endpoint=http://minio:9000 bucket=bucket prefix=p region=us-east-1 path_style=true`},
		{"URL before environment", "s3://bucket/p?endpoint=https://a.test&region=r1&force-path-style=false",
			[]string{"AWS_ENDPOINT_URL=http://b.test", "AWS_REGION=r2"},
			`endpoint=https://a.test bucket=bucket prefix=p region=r1 path_style=false`},
		{"profile", "s3://bucket/p", []string{"AWS_CONFIG_FILE=" + profile, "AWS_PROFILE=lake"},
			`endpoint=https://lake.test bucket=bucket prefix=p region=eu-north-1 path_style=true`},
		{"R2 has one region", "s3://bucket?endpoint=https://x.r2.cloudflarestorage.com", nil,
			`endpoint=https://x.r2.cloudflarestorage.com bucket=bucket prefix="" region=auto path_style=true`},
		{"dotted name needs path style", "s3://my.bucket?endpoint=https://s3.us-east-1.amazonaws.com&region=us-east-1", nil,
			`endpoint=https://s3.us-east-1.amazonaws.com bucket=my.bucket prefix="" region=us-east-1 path_style=true`},
	} {
		t.Run(c.name, func(t *testing.T) {
			environment(t)
			b, err := openWith(t, c.url, c.env)
			if err != nil {
				t.Fatal(err)
			}
			if got := resolved(t, b); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func openWith(t *testing.T, url string, env []string) (*s3.Bucket, error) {
	t.Helper()
	for _, setting := range env {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
	}
	config, err := s3.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return s3.Open(t.Context(), config)
}

func TestEnvironmentThatMakesNoSenseIsAnError(t *testing.T) {
	for _, c := range []struct {
		url, env, hint string
	}{
		{"s3://bucket/p", "AWS_REGION=", "no region"},
		{"s3://bucket/p?endpoint=https://s3.amazonaws.com", "AWS_REGION=", "no region"},
		{"s3://bucket/p", "AWS_ENDPOINT_URL=minio:9000", "AWS_ENDPOINT_URL"},
		{"s3://bucket/p?region=r", "AWS_PROFILE=no-such-profile", "no-such-profile"},
		{"s3://bucket/p?region=r", "AWS_CA_BUNDLE=/no/such/file", "/no/such/file"},
	} {
		t.Run(c.env, func(t *testing.T) {
			environment(t)
			b, err := openWith(t, c.url, []string{c.env})
			if err == nil {
				t.Fatalf("opened %s", resolved(t, b))
			}
			if !strings.Contains(err.Error(), c.hint) || !strings.Contains(err.Error(), "s3://bucket/p") {
				t.Errorf("error %q does not say %q", err, c.hint)
			}
		})
	}
}
